//! The text that every signature of an update signs (IDENT-020). Depends on typed updates.

use std::fmt::Write as _;

use crate::{
    handle,
    identifier::MemberIdentifier,
    timestamp,
    update::{Action, Update},
};

impl<S> Update<S> {
    /// The text of the update: one for all its actions, built from the fields as received.
    #[must_use]
    pub fn signature_text(&self) -> String {
        let mut text = String::from("XMTP : Authenticate to inbox\n\n");
        let time = timestamp::to_text(self.client_timestamp_ns);
        // Writing to a string cannot fail.
        let _ = write!(text, "Inbox ID: {}\nCurrent time: {time}\n\n", self.inbox_id);
        for action in &self.actions {
            let (first_line, label, named) = lines(action);
            let _ = writeln!(text, "- {first_line}\n  ({label}: {named})");
        }
        text.push_str("\nFor more info: https://xmtp.org/signatures");
        text
    }
}

/// What an action is called, what it names is called, and what it names.
fn lines<S>(action: &Action<S>) -> (&'static str, &'static str, String) {
    match action {
        Action::CreateInbox { initial, .. } => ("Create inbox", "Owner", initial.to_string()),
        Action::AddAssociation { new_member, .. } => {
            let first_line = match new_member {
                MemberIdentifier::Installation(_) => "Grant messaging access to app",
                MemberIdentifier::Ethereum(_) => "Link address to inbox",
                MemberIdentifier::Passkey(_) => "Link passkey to inbox",
            };
            (first_line, label_of(new_member), new_member.to_string())
        }
        Action::RevokeAssociation { member, .. } => {
            let first_line = match member {
                MemberIdentifier::Installation(_) => "Revoke messaging access from app",
                MemberIdentifier::Ethereum(_) => "Unlink address from inbox",
                MemberIdentifier::Passkey(_) => "Unlink passkey from inbox",
            };
            (first_line, label_of(member), member.to_string())
        }
        // A passkey is called an address here too.
        Action::ChangeRecoveryAddress { new_recovery, .. } => (
            "Change inbox recovery address",
            "Address",
            new_recovery.to_string(),
        ),
        Action::ClaimHandle { handle, .. } => (handle::TEXT_LINE, handle::TEXT_LABEL, handle.to_string()),
    }
}

const fn label_of(member: &MemberIdentifier) -> &'static str {
    match member {
        MemberIdentifier::Installation(_) => "ID",
        MemberIdentifier::Ethereum(_) => "Address",
        MemberIdentifier::Passkey(_) => "Passkey",
    }
}
