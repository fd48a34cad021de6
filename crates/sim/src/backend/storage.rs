//! SQLite as an object sees it, with the semantics of a crash: what was not made durable is gone.
//!
//! The [`Disk`] is the list of statements that are durable. A run of the object works on a [`View`]: a database made from
//! the disk, and the statements it ran since. A crash drops the view; a run that has a successor cannot make anything
//! durable any more. Depends on `sql` alone.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use conclave_sql::{Row, Sql, SqlError, Value, native::Database};

/// One durable change.
#[derive(Clone, Debug)]
enum Change {
    Statement { text: Rc<str>, parameters: Vec<Value> },
    Alarm(Option<u64>),
}

/// What survives.
#[derive(Debug, Default)]
pub(super) struct Disk {
    changes: RefCell<Vec<Change>>,
    alarm_ms: Cell<Option<u64>>,
    /// The only run that may write.
    owner: Cell<u64>,
}

impl Disk {
    /// When the durable alarm is due, in milliseconds of the object's clock.
    pub(super) fn alarm_ms(&self) -> Option<u64> {
        self.alarm_ms.get()
    }

    /// The platform is about to run the alarm.
    pub(super) fn clear_alarm(&self) {
        self.alarm_ms.set(None);
    }

    /// Begins a run: whatever ran before can write no more.
    pub(super) fn begin_run(self: &Rc<Self>, steps: Rc<dyn Fn() -> u64>) -> View {
        self.owner.set(self.owner.get() + 1);
        let database = Database::in_memory().expect("a database in memory");
        let run = || -> Result<(), SqlError> {
            database.execute("BEGIN", &[])?;
            for change in self.changes.borrow().iter() {
                if let Change::Statement { text, parameters } = change {
                    database.execute(text, parameters)?;
                }
            }
            database.execute("COMMIT", &[])
        };
        run().expect("what ran once runs again");
        View {
            disk: Rc::clone(self),
            run: self.owner.get(),
            database,
            pending: RefCell::default(),
            written: Cell::new(0),
            alarm_ms: Cell::new(self.alarm_ms.get()),
            steps,
        }
    }

    fn keep(&self, change: Change) {
        if let Change::Alarm(at_ms) = change {
            self.alarm_ms.set(at_ms);
        } else {
            self.changes.borrow_mut().push(change);
        }
    }
}

/// What one run of an object sees.
pub(super) struct View {
    disk: Rc<Disk>,
    run: u64,
    database: Database,
    /// Not yet durable, each with the turn that wrote it.
    pending: RefCell<Vec<(u64, Change)>>,
    written: Cell<u64>,
    alarm_ms: Cell<Option<u64>>,
    steps: Rc<dyn Fn() -> u64>,
}

impl View {
    /// How many changes this run has made.
    pub(super) fn written(&self) -> u64 {
        self.written.get()
    }

    /// How many of them are durable.
    pub(super) fn durable(&self) -> u64 {
        self.written.get() - self.pending.borrow().len() as u64
    }

    /// Makes everything durable. False when a later run owns the disk: the writes are lost.
    pub(super) fn flush(&self) -> bool {
        if self.disk.owner.get() != self.run {
            return false;
        }
        for (_, change) in self.pending.take() {
            self.disk.keep(change);
        }
        true
    }

    /// The run ends in the middle of writing: a random number of turns became durable without anybody being told. With
    /// `torn`, it may be a part of a turn.
    pub(super) fn flush_some(&self, draw: impl Fn(usize) -> usize, torn: bool) {
        if self.disk.owner.get() != self.run {
            return;
        }
        let mut pending = self.pending.take();
        if torn {
            pending.truncate(draw(pending.len() + 1));
        } else {
            let mut turns: Vec<u64> = pending.iter().map(|(turn, _)| *turn).collect();
            turns.dedup();
            let kept = draw(turns.len() + 1);
            let lost = turns.get(kept).copied().unwrap_or(u64::MAX);
            pending.retain(|(turn, _)| *turn < lost);
        }
        for (_, change) in pending {
            self.disk.keep(change);
        }
    }

    /// Asks for an alarm, unless one is set for earlier. A write like any other.
    pub(super) fn set_alarm(&self, at_ms: u64) {
        if self.alarm_ms.get().is_some_and(|set| set <= at_ms) {
            return;
        }
        self.alarm_ms.set(Some(at_ms));
        self.push(Change::Alarm(Some(at_ms)));
    }

    /// The platform is about to run the alarm.
    pub(super) fn alarm_fires(&self) {
        self.alarm_ms.set(None);
    }

    fn push(&self, change: Change) {
        self.pending.borrow_mut().push(((self.steps)(), change));
        self.written.set(self.written.get() + 1);
    }
}

impl Sql for View {
    fn query(&self, statement: &str, parameters: &[Value]) -> Result<Vec<Row>, SqlError> {
        assert!(
            parameters.len() <= 100,
            "a Durable Object binds at most 100 parameters"
        );
        assert!(
            statement.len() <= 100_000,
            "a Durable Object takes at most 100 KB of SQL"
        );
        let rows = self.database.query(statement, parameters)?;
        if !statement.starts_with("SELECT") && !statement.starts_with("EXPLAIN") {
            self.push(Change::Statement {
                text: statement.into(),
                parameters: parameters.to_vec(),
            });
        }
        Ok(rows)
    }

    fn transaction<T, E: From<SqlError>>(&self, body: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let (before, written) = (self.pending.borrow().len(), self.written.get());
        let outcome = self.database.transaction(body);
        if outcome.is_err() {
            self.pending.borrow_mut().truncate(before);
            self.written.set(written);
        }
        outcome
    }

    fn rows_written(&self) -> u64 {
        self.database.rows_written()
    }
}
