//! SQLite as an object sees it, with the semantics of a crash: what was not made durable is gone.
//!
//! The [`Disk`] is a database with a savepoint at what is durable. A run of the object works above it through a [`View`],
//! which remembers the statements it ran since. A crash rolls back to the savepoint; a run that gets a successor goes on
//! with a copy, and cannot make anything durable any more. Depends on `sql` alone.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use conclave_sql::{Row, Sql, SqlError, Value, native::Database};

/// One change.
#[derive(Clone, Debug)]
enum Change {
    Statement { text: Rc<str>, parameters: Vec<Value> },
    Alarm(Option<u64>),
}

/// What survives.
#[derive(Debug)]
pub(super) struct Disk {
    /// What is durable below the savepoint, what the owner wrote since above it.
    database: Rc<Database>,
    alarm_ms: Cell<Option<u64>>,
    /// The only run that may write.
    owner: Cell<u64>,
}

impl Default for Disk {
    fn default() -> Self {
        let database = Database::in_memory().expect("a database in memory");
        command(&database, SAVE);
        Self {
            database: Rc::new(database),
            alarm_ms: Cell::default(),
            owner: Cell::default(),
        }
    }
}

const SAVE: &str = "SAVEPOINT durable";
const ROLL_BACK: &str = "ROLLBACK TO durable";
const RELEASE: &str = "RELEASE durable";

fn command(database: &Database, statement: &str) {
    database.execute(statement, &[]).expect("a transaction command");
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

    /// Begins a run: whatever ran before can write no more. If it still runs, it must have been detached.
    pub(super) fn begin_run(self: &Rc<Self>, steps: Rc<dyn Fn() -> u64>) -> View {
        self.owner.set(self.owner.get() + 1);
        command(&self.database, ROLL_BACK);
        View {
            disk: Rc::clone(self),
            run: self.owner.get(),
            database: RefCell::new(Rc::clone(&self.database)),
            pending: RefCell::default(),
            written: Cell::new(0),
            alarm_ms: Cell::new(self.alarm_ms.get()),
            steps,
        }
    }

    /// What the owner wrote is durable from here on.
    fn keep(&self) {
        command(&self.database, RELEASE);
        command(&self.database, SAVE);
    }

    fn keep_alarm(&self, change: &Change) {
        if let Change::Alarm(at_ms) = change {
            self.alarm_ms.set(*at_ms);
        }
    }
}

/// Runs again what ran before on the same rows.
fn replay<'a>(database: &Database, changes: impl Iterator<Item = &'a Change>) {
    for change in changes {
        if let Change::Statement { text, parameters } = change {
            database
                .execute(text, parameters)
                .expect("what ran once runs again");
        }
    }
}

/// What one run of an object sees.
pub(super) struct View {
    disk: Rc<Disk>,
    run: u64,
    database: RefCell<Rc<Database>>,
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
            self.disk.keep_alarm(&change);
        }
        self.disk.keep();
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
        let kept = || pending.iter().map(|(_, change)| change);
        command(&self.disk.database, ROLL_BACK);
        replay(&self.disk.database, kept());
        self.disk.keep();
        kept().for_each(|change| self.disk.keep_alarm(change));
    }

    /// Goes on beside a successor, on a copy of what it sees.
    pub(super) fn detach(&self) {
        let shared = &self.disk.database;
        command(shared, ROLL_BACK);
        command(shared, RELEASE);
        let copy = shared.copy().expect("a copy of a database in memory");
        command(shared, SAVE);
        let pending = self.pending.borrow();
        replay(&copy, pending.iter().map(|(_, change)| change));
        self.database.replace(Rc::new(copy));
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
        let rows = self.database.borrow().query(statement, parameters)?;
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
        let database = Rc::clone(&self.database.borrow());
        let outcome = database.transaction(body);
        if outcome.is_err() {
            self.pending.borrow_mut().truncate(before);
            self.written.set(written);
        }
        outcome
    }

    fn rows_written(&self) -> u64 {
        self.database.borrow().rows_written()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with one durable row, and a run that has written two more, each in a turn of its own.
    fn begun() -> (Rc<Disk>, View) {
        let disk = Rc::new(Disk::default());
        let turn = Rc::new(Cell::new(0));
        let steps = Rc::clone(&turn);
        let view = disk.begin_run(Rc::new(move || steps.replace(steps.get() + 1)));
        view.execute("CREATE TABLE row (value INTEGER)", &[])
            .expect("a table");
        write(&view, 1);
        assert!(view.flush());
        write(&view, 2);
        write(&view, 3);
        (disk, view)
    }

    fn begin(disk: &Rc<Disk>) -> View {
        disk.begin_run(Rc::new(|| 0))
    }

    fn write(view: &View, value: u32) {
        view.execute("INSERT INTO row VALUES (?)", &[value.into()])
            .expect("a row");
    }

    fn rows(view: &View) -> Vec<i64> {
        let rows = view.query("SELECT value FROM row ORDER BY value", &[]);
        let rows = rows.expect("rows");
        rows.iter().map(|row| row.integer(0).expect("a number")).collect()
    }

    #[test]
    fn a_crash_takes_what_was_not_durable_and_leaves_the_rest() {
        let (disk, view) = begun();
        assert_eq!(rows(&view), [1, 2, 3]);
        assert_eq!(rows(&begin(&disk)), [1]);
    }

    #[test]
    fn whole_turns_may_have_become_durable_before_a_crash() {
        for kept in 0..=2 {
            let (disk, view) = begun();
            view.flush_some(|_| kept, false);
            let expected: Vec<i64> = (1..=3).take(kept + 1).collect();
            assert_eq!(rows(&begin(&disk)), expected);
        }
    }

    #[test]
    fn a_run_with_a_successor_sees_its_own_writes_and_makes_none_durable() {
        let (disk, view) = begun();
        view.detach();
        let successor = begin(&disk);
        write(&view, 4);
        write(&successor, 5);
        assert_eq!(rows(&view), [1, 2, 3, 4]);
        assert_eq!(rows(&successor), [1, 5]);
        assert!(!view.flush() && successor.flush());
        assert_eq!(rows(&begin(&disk)), [1, 5]);
    }

    #[test]
    fn a_transaction_that_fails_is_forgotten_as_a_whole() {
        let (disk, view) = begun();
        let failed: Result<(), SqlError> = view.transaction(|| {
            write(&view, 4);
            view.execute("nonsense", &[])
        });
        assert!(failed.is_err());
        assert!(view.flush());
        assert_eq!(rows(&begin(&disk)), [1, 2, 3]);
    }
}
