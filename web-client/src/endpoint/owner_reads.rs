//! What an owner may read of its own store: certified history, page by page. Pure but for asking the driver and the store.
//!
//! A page is the driver's to plan and to judge, because the engine knows the chain and what it verified already; the rows
//! are read between the two, as any other read.
//!
//! A page crosses as lines: what belongs to the page as JSON, then the values themselves in their canonical bytes. Nothing
//! is made of them here: `ts/certified.ts` shows them, `ts/history.ts` writes them into an export as they are.

use conclave_conversation::address::Destination;
use conclave_conversation::engine::Corruption;
use conclave_conversation::engine::history::{
    HistoryError, HistoryPage, HistoryPlace, HistoryPlan, HistorySnapshot, HistoryStart,
};
use conclave_conversation::store::Snapshot;
use conclave_conversation::values::ClosedValue;
use conclave_harness::AgentName;
use futures_channel::oneshot;
use serde_json::json;

use super::driver::{Driver, Message};
use super::handle::{Handle, closed};
use super::requests::Arguments;
use crate::failure::{Failure, Operation, corrupt};
use crate::store::StoreFailure;

/// Which items of a history are asked for.
pub(super) struct Question {
    /// The conversation's canonical address.
    address: String,
    snapshot: Option<HistorySnapshot>,
    start: Start,
    items_max: usize,
}

enum Start {
    Known(HistoryStart),
    /// The post of an id, of this author if one is named.
    Post(String, Option<AgentName>),
}

/// What the driver is asked.
pub(super) enum Asked {
    Plan(Box<Question>, oneshot::Sender<Result<HistoryPlan, HistoryError>>),
    Read(
        Box<(HistoryPlan, Snapshot)>,
        oneshot::Sender<Result<HistoryPage, Corruption>>,
    ),
}

impl Driver {
    pub(super) fn answer_owner(&mut self, asked: Asked) {
        // Whoever asked may have gone.
        match asked {
            Asked::Plan(question, answer) => drop(answer.send(self.plan(*question))),
            Asked::Read(read, answer) => {
                let (plan, rows) = *read;
                drop(answer.send(self.engine.read_history(plan, &rows)));
            }
        }
    }

    fn plan(&self, question: Question) -> Result<HistoryPlan, HistoryError> {
        let Question {
            address,
            snapshot,
            start,
            items_max,
        } = question;
        let membership = self.locate(&address).ok_or(HistoryError::UnknownConversation)?;
        let start = match start {
            Start::Known(start) => start,
            Start::Post(post, author) => {
                let post = post.parse().map_err(|_| HistoryError::UnknownPost)?;
                let author = author
                    .map(|name| membership.card_named(&name).map(|card| card.agent_id()))
                    .map(|author| author.ok_or(HistoryError::UnknownPost));
                HistoryStart::Post(post, author.transpose()?)
            }
        };
        self.engine
            .plan_history(membership.conversation_id(), snapshot, start, items_max)
    }
}

impl Handle {
    /// A page of the certified history at an address, as lines.
    pub(super) async fn history(&self, arguments: &Arguments) -> Result<String, Failure> {
        let question = question(arguments, self.local_name())?;
        let plan = self
            .ask(|answer| Asked::Plan(Box::new(question), answer))
            .await?
            .map_err(|error| {
                let code = match error {
                    HistoryError::ForeignSnapshot => "invalid-continuation",
                    HistoryError::UnknownConversation
                    | HistoryError::UnknownRecord
                    | HistoryError::UnknownPost => "not-found",
                };
                failure(code, &error)
            })?;
        let rows = self.read(plan.reads().to_vec()).await.map_err(unreadable)?;
        let page = self
            .ask(|answer| Asked::Read(Box::new((plan, rows)), answer))
            .await?
            .map_err(|corruption| failure("corrupt", &corruption))?;
        lines(&page)
    }

    async fn ask<T>(&self, asked: impl FnOnce(oneshot::Sender<T>) -> Asked) -> Result<T, Failure> {
        let (answer, outcome) = oneshot::channel();
        self.tell(Message::Owner(asked(answer)));
        outcome
            .await
            .map_err(|_| closed(Operation::History, "persistence-failed"))
    }
}

fn failure(code: &'static str, problem: &impl ToString) -> Failure {
    Failure::new(Operation::History, code, problem.to_string())
}

fn unreadable(cause: StoreFailure) -> Failure {
    failure("persistence-failed", &cause).because(cause.into())
}

fn question(arguments: &Arguments, local: &AgentName) -> Result<Question, Failure> {
    let destination = Destination::parse(arguments.text("address")?, local)
        .map_err(|error| failure("invalid-address", &error))?;
    let place = |records, reanchors| -> Result<HistoryPlace, Failure> {
        Ok(HistoryPlace {
            records: arguments.number(records)?,
            reanchors: arguments.number(reanchors)?,
        })
    };
    let snapshot = if arguments.has("endRecords") {
        let head = arguments.text("head").ok().and_then(|head| head.parse().ok());
        Some(HistorySnapshot {
            end: place("endRecords", "endReanchors")?,
            head,
        })
    } else {
        None
    };
    let start = if arguments.has("post") {
        let author = arguments.text("author").ok();
        let name = |author: &str| {
            let name = author.strip_prefix("agent:").unwrap_or(author);
            name.parse().map_err(|error| failure("invalid-address", &error))
        };
        Start::Post(arguments.text("post")?.to_owned(), author.map(name).transpose()?)
    } else if arguments.has("fromRecords") {
        Start::Known(HistoryStart::Place(place("fromRecords", "fromReanchors")?))
    } else if arguments.has("position") {
        Start::Known(HistoryStart::AfterRecords(arguments.number("position")?))
    } else {
        let record = arguments.text("after")?.parse();
        let record = record.map_err(|_| failure("not-found", &HistoryError::UnknownRecord))?;
        Start::Known(HistoryStart::After(record))
    };
    Ok(Question {
        address: destination.canonical(),
        snapshot,
        start,
        // As many as the engine gives at once, if this number is none.
        items_max: usize::try_from(arguments.number("limit")?).unwrap_or(usize::MAX),
    })
}

fn lines(page: &HistoryPage) -> Result<String, Failure> {
    let pair = |place: HistoryPlace| [place.records, place.reanchors];
    let head = json!({
        "end": pair(page.snapshot.end),
        "head": page.snapshot.head.map(|head| head.to_string()),
        "from": pair(page.start),
        "next": pair(page.next),
    });
    let mut text = head.to_string().into_bytes();
    text.push(b'\n');
    text.extend(page.membership.descriptor().encode());
    for item in &page.items {
        text.push(b'\n');
        text.extend(item.encode());
    }
    // Canonical bytes are text.
    String::from_utf8(text).map_err(|error| corrupt(error.to_string()))
}
