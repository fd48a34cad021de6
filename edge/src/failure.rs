//! Requests that fail on purpose, in builds for tests only: what a failure leaves behind can be seen from outside.
//!
//! `/fail/worker/HOW` fails in the Worker, `/fail/shard/HOW` in shard 0, which writes a row first. `/fail/shard/rows`
//! answers how many such rows are stored, `/fail/shard/sockets` how many message streams are open, and
//! `/fail/shard/rows-written` how many rows its run has written, index rows included, and `/fail/shard/activity` how often its
//! run was called, sent a message or woken, that request included. From `/fail/shard/hold` to `/fail/shard/release` nothing
//! becomes durable; `/fail/shard/held` answers once something waits for that.

use std::cell::Cell;

use conclave_sql::{Sql, SqlError, Value};
use conclave_topiclog::platform::{ObjectName, ObjectPlatform};
use js_sys::Uint8Array;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::JsFuture;

use crate::{
    environment::{Environment, to_name},
    platform::DurableObject,
    runtime, timer,
};

/// How often it is looked whether what is held may go on, in milliseconds.
const HOLD_POLL_MS: u32 = 10;

thread_local! {
    /// Nothing becomes durable meanwhile.
    static IS_HELD: Cell<bool> = const { Cell::new(false) };
    /// How much waits to become durable.
    static WAITING: Cell<u32> = const { Cell::new(0) };
}

/// Waits while `/fail/shard/hold` holds.
pub(crate) async fn wait_while_held() {
    WAITING.set(WAITING.get() + 1);
    while IS_HELD.get() {
        timer::delay(HOLD_POLL_MS).await;
    }
    WAITING.set(WAITING.get() - 1);
}

const PREFIX: &str = "/fail/";
const METHOD_PREFIX: &str = "fail-";
/// Answered by the host of an object, which counts.
pub(crate) const ACTIVITY_METHOD: &str = "fail-activity";
const CALL_DEADLINE_MS: u32 = 5_000;

/// Fails in the Worker, or passes the request on to shard 0 and answers 200 with what it answered or 503.
pub(crate) async fn in_worker(environment: &Environment, path: &str) -> Option<JsValue> {
    let (place, how) = path.strip_prefix(PREFIX)?.split_once('/')?;
    if place == "worker" {
        fail(how);
        return Some(runtime::whole_response(400, Vec::new(), None));
    }
    let shard = ObjectName::Shard(0);
    let namespace = environment.namespace(shard).ok()?;
    let method = format!("{METHOD_PREFIX}{how}");
    let call = runtime::call_object(
        &namespace,
        &to_name(shard),
        &method,
        Uint8Array::new_with_length(0),
        CALL_DEADLINE_MS,
    );
    Some(match JsFuture::from(call).await {
        Ok(answer) if answer.is_undefined() => runtime::whole_response(504, Vec::new(), None),
        Ok(answer) => runtime::whole_response(200, Vec::new(), Some(js_sys::Array::of1(&answer))),
        Err(_) => runtime::whole_response(503, Vec::new(), None),
    })
}

/// Fails in an object, after a write. `None` for a method of another kind.
pub(crate) async fn in_object(platform: &DurableObject, method: &str) -> Option<Vec<u8>> {
    let how = method.strip_prefix(METHOD_PREFIX)?;
    let sql = platform.sql();
    sql.execute(
        "CREATE TABLE IF NOT EXISTS test_failure (number INTEGER PRIMARY KEY)",
        &[],
    )
    .ok()?;
    let write = || sql.execute("INSERT INTO test_failure (number) VALUES (NULL)", &[]);
    let rows = || {
        let rows = sql.query("SELECT count(*) FROM test_failure", &[]).ok()?;
        rows.first().and_then(|row| row.unsigned(0).ok())
    };
    match how {
        "rows" => return rows().map(|count| count.to_string().into_bytes()),
        "rows-written" => return Some(sql.rows_written().to_string().into_bytes()),
        "sockets" => return Some(platform.sockets().len().to_string().into_bytes()),
        "hold" => IS_HELD.set(true),
        "release" => IS_HELD.set(false),
        "held" => {
            while WAITING.get() == 0 {
                timer::delay(HOLD_POLL_MS).await;
            }
        }
        "write" => write().ok()?,
        "wait" => wait_while_held().await,
        "rollback" => {
            let undone: Result<(), SqlError> = sql.transaction(|| {
                write()?;
                Err(SqlError::Shape {
                    column: 0,
                    expected: "",
                    found: "",
                })
            });
            undone.err()?;
        }
        "constraint" => {
            let values = [Value::from(1_000_000_u32)];
            sql.execute("INSERT INTO test_failure (number) VALUES (?)", &values)
                .ok()?;
            let twice = sql.execute("INSERT INTO test_failure (number) VALUES (?)", &values);
            sql.execute("DELETE FROM test_failure WHERE number = ?", &values)
                .ok()?;
            return Some(if matches!(twice, Err(SqlError::Constraint { .. })) {
                b"refused".to_vec()
            } else {
                b"".to_vec()
            });
        }
        "panic-in-transaction" => {
            write().ok()?;
            let _: Result<(), SqlError> = sql.transaction(|| {
                write()?;
                fail("panic");
                Ok(())
            });
        }
        "panic-after-sync" => {
            write().ok()?;
            platform.sync().await.ok()?;
            write().ok()?;
            fail("panic");
        }
        _ => {
            write().ok()?;
            fail(how);
        }
    }
    Some(b"done".to_vec())
}

#[allow(clippy::panic, reason = "it is what this module is for")]
fn fail(how: &str) {
    match how {
        "panic" => panic!("on purpose"),
        "trap" => std::process::abort(),
        "overflow" => {
            std::hint::black_box(deeper(1));
        }
        _ => {}
    }
}

#[allow(unconditional_recursion, reason = "it is to exhaust the stack")]
fn deeper(depth: u64) -> u64 {
    std::hint::black_box(deeper(std::hint::black_box(depth) + 1)) + 1
}
