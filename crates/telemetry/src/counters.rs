//! What is counted, in one process (OPS-016). Depends on [`crate::route`] and [`crate::completion`].
//!
//! The sets are bounded by the program: routes, codes and reasons are its own words.

use conclave_grpc_web::Code;

use crate::{Completion, Route};

/// The upper bounds of a histogram's buckets, in milliseconds and as the label in seconds has them. What is longer is
/// counted in the total alone.
pub const BUCKETS: [(u64, &str); 11] = [
    (5, "0.005"),
    (10, "0.01"),
    (25, "0.025"),
    (50, "0.05"),
    (100, "0.1"),
    (250, "0.25"),
    (500, "0.5"),
    (1_000, "1"),
    (2_500, "2.5"),
    (5_000, "5"),
    (10_000, "10"),
];

/// Requests that took so long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// How many fell between each bound and the one before it.
    pub buckets: [u64; BUCKETS.len()],
    /// How many there were.
    pub count: u64,
    /// How long all of them took, in milliseconds.
    pub sum_ms: u64,
}

impl Histogram {
    fn observe(&mut self, duration_ms: u64) {
        self.count += 1;
        self.sum_ms += duration_ms;
        let fitting = BUCKETS
            .iter()
            .zip(&mut self.buckets)
            .find(|((bound_ms, _), _)| duration_ms <= *bound_ms);
        if let Some((_, bucket)) = fitting {
            *bucket += 1;
        }
    }
}

/// What is counted of one route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteCounters {
    /// The route.
    pub route: Route,
    /// Requests that came.
    pub started: u64,
    /// Requests that are not over yet.
    pub in_flight: u64,
    /// Bytes of request bodies.
    pub request_bytes: u64,
    /// Bytes of response bodies.
    pub response_bytes: u64,
    /// Requests that are over, by their code, with the time they took.
    pub handled: Vec<(Code, Histogram)>,
}

/// The counters of a process, from 0 at its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// By route, in the order in which they were first asked for.
    pub routes: Vec<RouteCounters>,
    /// Refused credentials, by reason.
    pub rejections: Vec<(&'static str, u64)>,
    /// Fetches of a key set that gave keys.
    pub key_sets_fetched: u64,
    /// Fetches of a key set that failed.
    pub key_set_failures: u64,
}

impl Counters {
    /// A request came. Requests for health are not counted.
    pub fn started(&mut self, route: Route) {
        if let Some(counters) = self.of(route) {
            counters.started += 1;
            counters.in_flight += 1;
        }
    }

    /// A request that was [`Counters::started`] is over.
    pub fn handled(&mut self, completion: &Completion) {
        let Some(counters) = self.of(completion.route) else {
            return;
        };
        counters.in_flight = counters.in_flight.saturating_sub(1);
        counters.request_bytes += completion.request_bytes;
        counters.response_bytes += completion.response_bytes;
        let code = completion.code;
        let at = counters.handled.iter().position(|(handled, _)| *handled == code);
        let at = at.unwrap_or_else(|| {
            counters.handled.push((code, Histogram::default()));
            counters.handled.len() - 1
        });
        counters.handled[at].1.observe(completion.duration_ms);
    }

    /// A credential was refused.
    pub fn rejected(&mut self, reason: &'static str) {
        match self.rejections.iter_mut().find(|(counted, _)| *counted == reason) {
            Some((_, count)) => *count += 1,
            None => self.rejections.push((reason, 1)),
        }
    }

    /// A key set was fetched, or not.
    pub fn key_set_settled(&mut self, is_fetched: bool) {
        if is_fetched {
            self.key_sets_fetched += 1;
        } else {
            self.key_set_failures += 1;
        }
    }

    fn of(&mut self, route: Route) -> Option<&mut RouteCounters> {
        if route.is_health() {
            return None;
        }
        let at = self.routes.iter().position(|counters| counters.route == route);
        let at = at.unwrap_or_else(|| {
            self.routes.push(RouteCounters {
                route,
                started: 0,
                in_flight: 0,
                request_bytes: 0,
                response_bytes: 0,
                handled: Vec::new(),
            });
            self.routes.len() - 1
        });
        self.routes.get_mut(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUERY: &str = "/xmtp.backend.v1.QueryService/Query";

    fn completion(path: &'static str, code: Code, duration_ms: u64) -> Completion {
        Completion {
            route: Route::of(Some(path)),
            code,
            duration_ms,
            request_bytes: 10,
            response_bytes: 20,
        }
    }

    #[test]
    fn a_request_is_in_flight_until_it_is_handled() {
        let mut counters = Counters::default();
        counters.started(Route::of(Some(QUERY)));
        counters.started(Route::of(Some(QUERY)));
        counters.handled(&completion(QUERY, Code::Ok, 7));
        let [query] = &counters.routes[..] else {
            panic!("one route");
        };
        assert_eq!((query.started, query.in_flight), (2, 1));
        assert_eq!((query.request_bytes, query.response_bytes), (10, 20));
    }

    #[test]
    fn durations_fall_into_the_first_bucket_that_holds_them() {
        let mut counters = Counters::default();
        for duration_ms in [0, 5, 6, 10_000, 10_001] {
            counters.handled(&completion(QUERY, Code::Ok, duration_ms));
        }
        counters.handled(&completion(QUERY, Code::NotFound, 1));
        let [(Code::Ok, ok), (Code::NotFound, missing)] = &counters.routes[0].handled[..] else {
            panic!("two codes");
        };
        assert_eq!(ok.buckets, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!((ok.count, ok.sum_ms), (5, 20_012));
        assert_eq!(missing.count, 1);
    }

    #[test]
    fn health_is_not_counted() {
        let mut counters = Counters::default();
        let route = Route::of(Some("/grpc.health.v1.Health/Check"));
        counters.started(route);
        assert_eq!(counters, Counters::default());
    }

    #[test]
    fn rejections_and_key_sets_are_counted_by_what_they_came_to() {
        let mut counters = Counters::default();
        counters.rejected("expired");
        counters.rejected("missing");
        counters.rejected("expired");
        counters.key_set_settled(true);
        counters.key_set_settled(false);
        counters.key_set_settled(false);
        assert_eq!(counters.rejections, [("expired", 2), ("missing", 1)]);
        assert_eq!((counters.key_sets_fetched, counters.key_set_failures), (1, 2));
    }
}
