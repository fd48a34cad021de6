//! Counters as Prometheus reads them: text format 0.0.4 (OPS-016). Depends on [`crate::counters`].
//!
//! Names, types and labels are those of the OPS catalogue, as far as a process of this deployment knows the values.
//! Families whose first event is still to come are absent, as the catalogue has it. Two gauges are of this deployment
//! alone and begin with `conclave_`.

use std::fmt::{self, Display, Write as _};

use crate::{
    Counters,
    counters::{BUCKETS, Histogram, RouteCounters},
    text::code_name,
};

/// The content type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What is looked at when somebody asks, rather than counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// The version of the build.
    pub version: &'static str,
    /// Whether the deployment reports SERVING.
    pub is_ready: bool,
    /// How many signing keys are in use.
    pub key_count: usize,
    /// When this process began to count, in seconds since the Unix epoch.
    pub counting_since_seconds: u64,
    /// The newest sequence id the deployment has handed out, when it could be asked for.
    pub last_sequence_id: Option<u64>,
    /// The closed allocation boundary of the deployment (API-203), when it is known.
    pub closed_boundary: Option<u64>,
}

/// The text.
#[must_use]
pub fn exposition(counters: &Counters, gauges: &Gauges) -> String {
    let mut text = Text(String::new());
    gauges_of_process(&mut text, gauges);
    gauges_of_deployment(&mut text, gauges);
    routes(&mut text, &counters.routes);
    if !counters.rejections.is_empty() {
        text.family(
            "xmtp_auth_rejections_total",
            "counter",
            "Credentials refused, by reason.",
        );
        for (reason, count) in &counters.rejections {
            text.sample("xmtp_auth_rejections_total", &[("reason", reason)], count);
        }
    }
    let fetches = [
        ("ok", counters.key_sets_fetched),
        ("error", counters.key_set_failures),
    ];
    if fetches.iter().any(|(_, count)| *count > 0) {
        let name = "xmtp_auth_jwks_refresh_total";
        text.family(name, "counter", "Fetches of the key set, by result.");
        for (result, count) in fetches.iter().filter(|(_, count)| *count > 0) {
            text.sample(name, &[("result", result)], count);
        }
    }
    text.0
}

fn gauges_of_process(text: &mut Text, gauges: &Gauges) {
    text.family("xmtp_backend_info", "gauge", "The build that answers.");
    text.sample("xmtp_backend_info", &[("version", gauges.version)], 1);
    text.family("xmtp_backend_ready", "gauge", "1 while health reports SERVING.");
    text.sample("xmtp_backend_ready", &[], u8::from(gauges.is_ready));
    text.family("xmtp_auth_keys", "gauge", "Keys that tokens may be signed with.");
    text.sample("xmtp_auth_keys", &[], gauges.key_count);
    let name = "conclave_counting_since_seconds";
    let help = "When the process that answers began to count, since the Unix epoch. Another value is another process: \
                its counters are its own.";
    text.family(name, "gauge", help);
    text.sample(name, &[], gauges.counting_since_seconds);
}

fn gauges_of_deployment(text: &mut Text, gauges: &Gauges) {
    for (name, value, help) in [
        (
            "conclave_last_sequence_id",
            gauges.last_sequence_id,
            "The newest sequence id that was handed out, in the whole deployment.",
        ),
        (
            "conclave_closed_boundary_sequence_id",
            gauges.closed_boundary,
            "The closed allocation boundary of the whole deployment.",
        ),
    ] {
        if let Some(value) = value {
            text.family(name, "gauge", help);
            text.sample(name, &[], value);
        }
    }
}

/// A family of one number a route: its name, type, help and value.
type RouteFamily = (
    &'static str,
    &'static str,
    &'static str,
    fn(&RouteCounters) -> u64,
);

const ROUTE_FAMILIES: [RouteFamily; 4] = [
    (
        "grpc_server_started_total",
        "counter",
        "Requests that came.",
        |route| route.started,
    ),
    (
        "grpc_server_in_flight",
        "gauge",
        "Requests that are not over.",
        |route| route.in_flight,
    ),
    (
        "grpc_server_request_bytes_total",
        "counter",
        "Bytes of request bodies, of requests that are over.",
        |route| route.request_bytes,
    ),
    (
        "grpc_server_response_bytes_total",
        "counter",
        "Bytes of response bodies, of requests that are over.",
        |route| route.response_bytes,
    ),
];

fn routes(text: &mut Text, routes: &[RouteCounters]) {
    if routes.is_empty() {
        return;
    }
    for (name, kind, help, value) in ROUTE_FAMILIES {
        text.family(name, kind, help);
        for route in routes {
            text.sample(name, &labels(route), value(route));
        }
    }
    let handled: Vec<_> = routes
        .iter()
        .flat_map(|route| {
            route
                .handled
                .iter()
                .map(|(code, times)| (labels(route), code_name(*code), times))
        })
        .collect();
    if handled.is_empty() {
        return;
    }
    text.family(
        "grpc_server_handled_total",
        "counter",
        "Requests that are over, by code.",
    );
    for (labels, code, times) in &handled {
        let labels = [&labels[..], &[("grpc_code", code.as_str())]].concat();
        text.sample("grpc_server_handled_total", &labels, times.count);
    }
    let name = "grpc_server_handling_seconds";
    text.family(
        name,
        "histogram",
        "How long requests took until their response had ended.",
    );
    for (labels, code, times) in &handled {
        text.histogram(
            name,
            &[&labels[..], &[("grpc_code", code.as_str())]].concat(),
            times,
        );
    }
}

fn labels(counters: &RouteCounters) -> [(&'static str, &'static str); 3] {
    let (service, method) = counters.route.names();
    [
        ("grpc_service", service),
        ("grpc_method", method),
        ("grpc_type", counters.route.kind()),
    ]
}

/// Milliseconds as the seconds Prometheus wants.
struct Seconds(u64);

impl Display for Seconds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{:03}", self.0 / 1_000, self.0 % 1_000)
    }
}

struct Text(String);

#[allow(clippy::let_underscore_must_use, reason = "writing to a String cannot fail")]
impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Label values are words of the program, which need no escapes.
    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        let mut separator = '{';
        for (label, said) in labels {
            let _ = write!(self.0, "{separator}{label}=\"{said}\"");
            separator = ',';
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{end} {value}");
    }

    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], times: &Histogram) {
        let bucket = format!("{name}_bucket");
        let mut up_to_here = 0;
        for ((_, bound), count) in BUCKETS.iter().zip(times.buckets) {
            up_to_here += count;
            self.sample(&bucket, &[labels, &[("le", *bound)]].concat(), up_to_here);
        }
        self.sample(&bucket, &[labels, &[("le", "+Inf")]].concat(), times.count);
        self.sample(&format!("{name}_sum"), labels, Seconds(times.sum_ms));
        self.sample(&format!("{name}_count"), labels, times.count);
    }
}

#[cfg(test)]
mod tests {
    use conclave_grpc_web::Code;

    use super::*;
    use crate::{Completion, Route};

    fn busy() -> Counters {
        let mut counters = Counters::default();
        let route = Route::of(Some("/xmtp.backend.v1.QueryService/Query"));
        counters.started(route);
        counters.started(route);
        counters.handled(&Completion {
            route,
            code: Code::DeadlineExceeded,
            duration_ms: 30,
            request_bytes: 7,
            response_bytes: 8,
        });
        counters.rejected("expired");
        counters.key_set_settled(true);
        counters
    }

    // OPS-016, OPS-017
    #[test]
    fn counters_are_written_with_the_names_and_labels_of_the_catalogue() {
        let gauges = Gauges {
            version: "1.2.3",
            is_ready: true,
            key_count: 2,
            counting_since_seconds: 1_800_000_000,
            last_sequence_id: Some(9),
            closed_boundary: None,
        };
        let text = exposition(&busy(), &gauges);
        let route = r#"grpc_service="xmtp.backend.v1.QueryService",grpc_method="Query",grpc_type="unary""#;
        for line in [
            "# TYPE grpc_server_started_total counter".to_owned(),
            format!("grpc_server_started_total{{{route}}} 2"),
            "# TYPE grpc_server_in_flight gauge".to_owned(),
            format!("grpc_server_in_flight{{{route}}} 1"),
            format!("grpc_server_request_bytes_total{{{route}}} 7"),
            format!("grpc_server_response_bytes_total{{{route}}} 8"),
            format!("grpc_server_handled_total{{{route},grpc_code=\"DeadlineExceeded\"}} 1"),
            "# TYPE grpc_server_handling_seconds histogram".to_owned(),
            format!(
                "grpc_server_handling_seconds_bucket{{{route},grpc_code=\"DeadlineExceeded\",le=\"0.025\"}} 0"
            ),
            format!(
                "grpc_server_handling_seconds_bucket{{{route},grpc_code=\"DeadlineExceeded\",le=\"0.05\"}} 1"
            ),
            format!(
                "grpc_server_handling_seconds_bucket{{{route},grpc_code=\"DeadlineExceeded\",le=\"10\"}} 1"
            ),
            format!(
                "grpc_server_handling_seconds_bucket{{{route},grpc_code=\"DeadlineExceeded\",le=\"+Inf\"}} 1"
            ),
            format!("grpc_server_handling_seconds_sum{{{route},grpc_code=\"DeadlineExceeded\"}} 0.030"),
            format!("grpc_server_handling_seconds_count{{{route},grpc_code=\"DeadlineExceeded\"}} 1"),
            r#"xmtp_auth_rejections_total{reason="expired"} 1"#.to_owned(),
            r#"xmtp_auth_jwks_refresh_total{result="ok"} 1"#.to_owned(),
            "xmtp_auth_keys 2".to_owned(),
            "xmtp_backend_ready 1".to_owned(),
            r#"xmtp_backend_info{version="1.2.3"} 1"#.to_owned(),
            "conclave_counting_since_seconds 1800000000".to_owned(),
            "conclave_last_sequence_id 9".to_owned(),
        ] {
            assert!(
                text.lines().any(|written| written == line),
                "{line} is missing from\n{text}"
            );
        }
        assert!(
            !text.contains("conclave_closed_boundary"),
            "what is not known is not shown"
        );
        assert!(
            !text.contains("result=\"error\""),
            "what never happened is absent"
        );
    }

    #[test]
    fn a_process_that_has_seen_nothing_shows_gauges_alone() {
        let text = exposition(&Counters::default(), &Gauges::default());
        assert!(!text.contains("_total"));
        assert!(text.contains("xmtp_backend_ready 0"));
        assert!(text.ends_with('\n'));
    }

    #[test]
    fn every_family_is_described_once_and_its_samples_stand_together() {
        let text = exposition(&busy(), &Gauges::default());
        let mut described = Vec::new();
        for line in text.lines() {
            match line.strip_prefix("# TYPE ") {
                Some(family) => {
                    let name = family.split(' ').next().expect("a name");
                    assert!(!described.contains(&name), "{name} twice");
                    described.push(name);
                }
                None if line.starts_with('#') => {}
                None => {
                    let current = described.last().expect("a description before any sample");
                    assert!(line.starts_with(current), "{line} among {current}");
                }
            }
        }
    }
}
