//! What goes wrong by itself, from time to time: objects break, sleep or are succeeded, Workers are lost, clocks jump.

use std::rc::Rc;

use super::{edge::Edge, faults::Fault, world::World};

/// The farthest a clock is from the true one, in nanoseconds: ten minutes.
const CLOCK_OFFSET_NS_MAX: i64 = 600_000_000_000;

/// Runs until faults stop.
pub(super) async fn run(world: Rc<World>, edges: Rc<Vec<Edge>>) {
    while world.are_faults_on() {
        let pause_ms = world.random.between(10, 400);
        world.sleep_ms(pause_ms).await;
        for object in world.objects() {
            if world.strikes(Fault::Hibernate) {
                object.hibernate(&world);
            }
            if world.strikes(Fault::Succeed) {
                object.succeed(&world);
            }
            // Twelve occasions at once: an idle object breaks as well, not only one that is at work.
            if (0..12).any(|_| world.strikes(Fault::Crash)) {
                object.break_down(&world);
            }
            if world.strikes(Fault::Clock) {
                object.clock_offset_ns.set(jump(&world));
            }
        }
        for edge in edges.iter() {
            if world.strikes(Fault::Edge) {
                edge.restart();
            }
            if world.strikes(Fault::Clock) {
                edge.set_clock_offset_ns(jump(&world));
            }
        }
    }
}

fn jump(world: &World) -> i64 {
    let span = CLOCK_OFFSET_NS_MAX.unsigned_abs();
    let drawn = world.random.between(0, 2 * span);
    i64::try_from(drawn).unwrap_or(0) - CLOCK_OFFSET_NS_MAX
}
