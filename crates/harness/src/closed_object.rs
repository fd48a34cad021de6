//! Reading JSON objects that must have exactly the members expected of them.

use crate::base64url;
use serde_json::{Map, Value};
use std::{fmt::Display, str::FromStr};

/// What is wrong with a JSON value, and at which member of what.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {problem}")]
pub(crate) struct SchemaError {
    at: String,
    problem: String,
}

impl SchemaError {
    pub(crate) fn new(at: impl Into<String>, problem: impl Display) -> Self {
        Self::of(at.into(), &problem)
    }

    // Once for every kind of problem: a browser downloads it.
    #[cold]
    fn of(at: String, problem: &dyn Display) -> Self {
        Self {
            at,
            problem: problem.to_string(),
        }
    }
}

/// What is wrong with a member of what.
#[cold]
pub(crate) fn member_error(what: &str, name: &str, problem: &dyn Display) -> SchemaError {
    SchemaError::of(format!("{what} member {name}"), problem)
}

/// An object whose members are taken out one by one until none may be left.
pub(crate) struct ClosedObject {
    what: &'static str,
    members: Map<String, Value>,
}

impl ClosedObject {
    pub(crate) fn open(what: &'static str, value: Value) -> Result<Self, SchemaError> {
        match value {
            Value::Object(members) => Ok(Self { what, members }),
            _ => Err(SchemaError::new(what, "not an object")),
        }
    }

    fn error(&self, name: &str, problem: impl Display) -> SchemaError {
        member_error(self.what, name, &problem)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    pub(crate) fn value(&mut self, name: &str) -> Result<Value, SchemaError> {
        self.members
            .remove(name)
            .ok_or_else(|| self.error(name, "missing"))
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<String, SchemaError> {
        match self.value(name)? {
            Value::String(text) => Ok(text),
            _ => Err(self.error(name, "not a string")),
        }
    }

    pub(crate) fn array(&mut self, name: &str) -> Result<Vec<Value>, SchemaError> {
        match self.value(name)? {
            Value::Array(values) => Ok(values),
            _ => Err(self.error(name, "not an array")),
        }
    }

    /// The only element of an array.
    pub(crate) fn only(&mut self, name: &str) -> Result<Value, SchemaError> {
        let [value] = <[Value; 1]>::try_from(self.array(name)?)
            .map_err(|values| self.error(name, format_args!("{} entries instead of 1", values.len())))?;
        Ok(value)
    }

    pub(crate) fn literal(&mut self, name: &str, expected: &str) -> Result<(), SchemaError> {
        if self.text(name)? == expected {
            Ok(())
        } else {
            Err(self.error(name, format_args!("not {expected}")))
        }
    }

    pub(crate) fn parsed<T: FromStr<Err: Display>>(&mut self, name: &str) -> Result<T, SchemaError> {
        self.text(name)?.parse().map_err(|error| self.error(name, error))
    }

    pub(crate) fn bytes(&mut self, name: &str) -> Result<Vec<u8>, SchemaError> {
        base64url::decode(&self.text(name)?).map_err(|error| self.error(name, error))
    }

    pub(crate) fn byte_array<const N: usize>(&mut self, name: &str) -> Result<[u8; N], SchemaError> {
        base64url::decode_array(&self.text(name)?).map_err(|error| self.error(name, error))
    }

    /// Requires that nothing is left.
    pub(crate) fn close(self) -> Result<(), SchemaError> {
        match self.members.keys().next() {
            None => Ok(()),
            Some(name) => Err(self.error(name, "not expected here")),
        }
    }
}
