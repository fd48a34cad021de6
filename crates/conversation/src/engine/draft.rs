//! A step under construction.

use conclave_harness::Randomness;

use super::effect::{Effect, Stage, Step};
use super::fold::Fold;
use super::ignored::Ignored;
use super::input::Context;
use crate::store::Transition;

/// The step that one input is going to give, and what the engine may use meanwhile.
pub(super) struct Draft<'a> {
    pub(super) now_ms: u64,
    pub(super) randomness: &'a mut dyn Randomness,
    pub(super) step: Step,
}

impl<'a> Draft<'a> {
    pub(super) fn new(context: Context<'a>) -> Self {
        Draft {
            now_ms: context.now_ms,
            randomness: context.randomness,
            step: Step::default(),
        }
    }

    /// To be committed, after everything before.
    pub(super) fn commit(&mut self, transition: Transition) {
        self.step.transitions.push(transition);
    }

    /// To be carried out after the commit, after everything before.
    pub(super) fn effect(&mut self, effect: Effect) {
        self.step.effects.push(effect);
    }

    /// The delivered message changes nothing.
    pub(super) fn ignore(&mut self, reason: Ignored) {
        self.step.ignored = Some(reason);
    }

    /// A post went on.
    pub(super) fn progress(&mut self, fold: &Fold, stage: Stage) {
        self.effect(Effect::Progress {
            conversation_id: *fold.record.core().conversation_id(),
            author_agent_id: *fold.record.author(),
            post_id: fold.record.core().post_intent().post_id,
            stage,
        });
    }
}
