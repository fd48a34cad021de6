//! Why an export does not verify.

use crate::membership::MembershipError;
use crate::values::ValueError;
use crate::verification::VerificationError;

use super::EXPORT_LINE_BYTES_MAX;

/// A line that does not verify.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ExportError {
    /// Which line, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub problem: ExportProblem,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExportProblem {
    /// There is no line at all.
    #[error("the file is empty")]
    Empty,
    /// The file ends without a line feed.
    #[error("the file ends within a line")]
    EndsWithinLine,
    /// A line longer than any value.
    #[error("the line is longer than {EXPORT_LINE_BYTES_MAX} bytes")]
    TooLong,
    /// The first line is no membership of the Registry's agents.
    #[error(transparent)]
    Membership(#[from] MembershipError),
    /// A later line is neither of the two values that follow.
    #[error("neither a certified record nor a completed re-anchor: {0}")]
    Item(ValueError),
    /// The value is not true of the membership.
    #[error(transparent)]
    Untrue(#[from] VerificationError),
    /// The value is true and belongs elsewhere.
    #[error("it does not follow the line before")]
    OutOfOrder,
    /// A line before was refused.
    #[error("a line before it was refused")]
    Refused,
}
