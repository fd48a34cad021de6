//! The alarm of an object: durable with the writes around it, run until it succeeds, forgotten after some failures.

use std::rc::Rc;

use super::{
    bugs::Breach,
    faults::Fault,
    object::Object,
    run::{Program, Work},
    world::{MILLI_NS, World},
};

/// How often the platform runs an alarm that fails, the first time included.
const ALARM_ATTEMPTS: u32 = 6;

impl Object {
    /// Starts the clock of the durable alarm, if it is a new one.
    pub(super) fn arm(self: &Rc<Self>, world: &Rc<World>) {
        let Some(at_ms) = self.disk.alarm_ms() else { return };
        if world.has(Breach::AlarmsForgotten) {
            return;
        }
        if self.armed_ms.replace(Some(at_ms)) == Some(at_ms) {
            return;
        }
        let (object, world) = (Rc::clone(self), Rc::clone(world));
        let wait_ms = at_ms.saturating_sub(self.clock_ns(&world) / MILLI_NS);
        let late_ms = match world.strikes(Fault::Alarm) {
            true => world.random.between(1, 30_000),
            false => 0,
        };
        let twice = world.strikes(Fault::Alarm);
        let executor = Rc::clone(&world);
        executor.executor.spawn(async move {
            world.sleep_ms(wait_ms + late_ms).await;
            if object.armed_ms.get() != Some(at_ms) {
                return;
            }
            object.armed_ms.set(None);
            object.disk.clear_alarm();
            object.fire(&world).await;
            if twice {
                object.fire(&world).await;
            }
        });
    }

    /// An alarm that is due by now goes off.
    pub(super) fn hear_of_skipped_time(self: &Rc<Self>, world: &Rc<World>) {
        self.armed_ms.set(None);
        self.arm(world);
    }

    /// Runs the alarm until it succeeds; after some failures the platform forgets it.
    async fn fire(self: &Rc<Self>, world: &Rc<World>) {
        for attempt in 0..ALARM_ATTEMPTS {
            if attempt > 0 {
                world.sleep_ms(2_000 << attempt).await;
            }
            let Ok(run) = self.open(world) else { continue };
            run.view.alarm_fires();
            let program = run.program();
            let gate = Rc::clone(&run);
            let work = async move {
                match program {
                    Some(Program::Shard(shard)) => shard.alarm().await,
                    Some(Program::Sequencer(sequencer)) => sequencer.alarm().await,
                    _ => {}
                }
                gate.wait_until_durable().await.is_ok()
            };
            if self.guard(world, &run, Work::Request, work).await == Some(true) {
                return;
            }
        }
        world.note(format!("the alarm of {:?} is forgotten", self.name));
    }
}
