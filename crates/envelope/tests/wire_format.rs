//! Holds the served messages against the contract's proto blocks, field by field.

use std::collections::BTreeMap;

use prost::Message as _;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};

/// Every message and enum of the contract: its name, then a line per field with number, presence, type, name and oneof.
const CONTRACT: &str = "\
Cursor
  1 uint64 sequence_id
Topic
  1 bytes topic
MessageHash
  1 bytes sha256 in hash
EnvelopeMeta
  1 Cursor cursor
  2 uint64 server_ns
  3 MessageHash message_hash
  4 Topic topic
  5 uint64 expiry_ns
  6 bool is_commit_or_proposal
GroupMessage
  1 bytes data
  2 bytes sender_hmac
  3 bool should_push
CommitLogEntry
  1 bytes serialized_commit_log_entry
  2 xmtp.identity.associations.RecoverableEd25519Signature signature
ClientEnvelope
  1 GroupMessage group_message in payload
  2 WelcomeMessage welcome_message in payload
  3 KeyPackage key_package in payload
  4 xmtp.identity.associations.IdentityUpdate identity_update in payload
  5 CommitLogEntry commit_log_entry in payload
ServerEnvelope
  1 EnvelopeMeta meta
  2 ClientEnvelope envelope
PublishRequest
  1 repeated ClientEnvelope envelopes
PublishResponse
  1 repeated EnvelopeMeta envelope_metas
PublishError
  1 optional uint32 index
  2 Reason reason
  3 string message
PublishError.Reason
  0 REASON_UNSPECIFIED
  1 REASON_MALFORMED_PAYLOAD
  2 REASON_INVALID_KEY_PACKAGE
  3 REASON_INVALID_IDENTITY_UPDATE
  4 REASON_INVALID_SIGNATURE
  5 REASON_TOO_LARGE
  6 REASON_HANDLE_TAKEN
  7 REASON_HANDLE_NOT_ALLOWED
  8 REASON_HANDLE_TOO_SOON
TopicQuery
  1 Topic topic
  2 Cursor cursor
QueryRequest
  1 repeated TopicQuery queries
  2 uint32 limit
QueryResponse
  1 repeated ServerEnvelope envelopes
  2 Continuation continuation
Continuation
  1 bool has_more
QueryNewestRequest
  1 repeated Topic topics
  2 bool include_full_envelope
QueryNewestResponse
  1 repeated Result results
QueryNewestResponse.Result
  1 Topic topic
  2 EnvelopeMeta meta
  3 ClientEnvelope envelope
CatchupTarget
  1 Topic topic
  2 uint64 through_sequence_id
SubscribeRequest
  1 Update update in request
  2 Ping ping in request
  3 Pong pong in request
SubscribeRequest.Update
  1 uint64 id
  2 repeated TopicQuery adds
  3 repeated Topic removes
SubscribeResponse
  1 Started started in response
  2 Applied applied in response
  3 Messages messages in response
  4 Ping ping in response
  5 Pong pong in response
SubscribeResponse.Started
  1 uint32 keepalive_interval_ms
SubscribeResponse.Applied
  1 uint64 id
  2 repeated CatchupTarget added_targets
SubscribeResponse.Messages
  1 repeated ServerEnvelope envelopes
Ping
  1 uint64 nonce
Pong
  1 uint64 nonce
SubscribeStaticRequest
  1 repeated TopicQuery topics
SubscribeStaticResponse
  1 Started started in response
  2 Messages messages in response
  3 Keepalive keepalive in response
SubscribeStaticResponse.Started
  1 uint32 keepalive_interval_ms
  2 repeated CatchupTarget targets
SubscribeStaticResponse.Messages
  1 repeated ServerEnvelope envelopes
SubscribeStaticResponse.Keepalive
GetInboxIdsRequest
  1 repeated Request requests
GetInboxIdsRequest.Request
  1 string identifier
  2 xmtp.identity.associations.IdentifierKind identifier_kind
GetInboxIdsResponse
  1 repeated Response responses
GetInboxIdsResponse.Response
  1 string identifier
  2 xmtp.identity.associations.IdentifierKind identifier_kind
  3 optional string inbox_id
VerifySmartContractWalletSignaturesRequest
  1 repeated Signature signatures
VerifySmartContractWalletSignaturesRequest.Signature
  1 string account_id
  2 optional uint64 block_number
  3 bytes hash
  4 bytes signature
VerifySmartContractWalletSignaturesResponse
  1 repeated Response responses
VerifySmartContractWalletSignaturesResponse.Response
  1 bool is_valid
  2 optional uint64 block_number
  3 optional string error
";

const PACKAGE: &str = "xmtp.backend.v1";

/// Messages and enums by name, each with its field lines in the form of [`CONTRACT`].
type Shapes = BTreeMap<String, Vec<String>>;

fn contract_shapes() -> Shapes {
    let mut shapes = Shapes::new();
    let mut name = "";
    for line in CONTRACT.lines() {
        match line.strip_prefix("  ") {
            None => {
                name = line;
                shapes.insert(name.to_owned(), Vec::new());
            }
            Some(field) => shapes
                .get_mut(name)
                .expect("a field follows its message")
                .push(field.to_owned()),
        }
    }
    shapes
}

fn served_shapes() -> Shapes {
    let files = FileDescriptorSet::decode(conclave_proto::FILE_DESCRIPTOR_SET).expect("a descriptor set");
    let mut shapes = Shapes::new();
    for file in files.file.iter().filter(|file| file.package() == PACKAGE) {
        for message in &file.message_type {
            add_message("", message, &mut shapes);
        }
        for item in &file.enum_type {
            add_enum("", item, &mut shapes);
        }
    }
    shapes
}

fn add_message(outer: &str, message: &DescriptorProto, shapes: &mut Shapes) {
    let name = format!("{outer}{}", message.name());
    let fields = message
        .field
        .iter()
        .map(|field| describe(message, field))
        .collect();
    shapes.insert(name.clone(), fields);
    let outer = format!("{name}.");
    message
        .nested_type
        .iter()
        .for_each(|nested| add_message(&outer, nested, shapes));
    message
        .enum_type
        .iter()
        .for_each(|nested| add_enum(&outer, nested, shapes));
}

fn add_enum(outer: &str, item: &EnumDescriptorProto, shapes: &mut Shapes) {
    let values = item
        .value
        .iter()
        .map(|value| format!("{} {}", value.number(), value.name()))
        .collect();
    shapes.insert(format!("{outer}{}", item.name()), values);
}

fn describe(message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    let (optional, oneof) = match field.oneof_index {
        _ if field.proto3_optional() => ("optional ", String::new()),
        Some(index) => (
            "",
            format!(
                " in {}",
                message.oneof_decl[usize::try_from(index).expect("an index")].name()
            ),
        ),
        None => ("", String::new()),
    };
    let repeated = if field.label() == Label::Repeated {
        "repeated "
    } else {
        ""
    };
    format!(
        "{} {optional}{repeated}{} {}{oneof}",
        field.number(),
        type_of(field),
        field.name()
    )
}

fn type_of(field: &FieldDescriptorProto) -> String {
    match field.r#type() {
        Type::Bool => "bool".to_owned(),
        Type::Bytes => "bytes".to_owned(),
        Type::String => "string".to_owned(),
        Type::Uint32 => "uint32".to_owned(),
        Type::Uint64 => "uint64".to_owned(),
        // The contract names types of its own package by their last part.
        Type::Message | Type::Enum => {
            let name = field.type_name().trim_start_matches('.');
            let is_own = name.starts_with(PACKAGE);
            if is_own {
                name.rsplit('.').next().unwrap_or(name).to_owned()
            } else {
                name.to_owned()
            }
        }
        other => format!("{other:?}"),
    }
}

// API-210
#[test]
fn every_message_of_the_contract_has_its_fields_with_their_numbers_types_and_presence() {
    let (contract, served) = (contract_shapes(), served_shapes());
    assert!(contract.len() > 35, "the table is whole");
    for (name, fields) in contract {
        assert_eq!(served.get(&name), Some(&fields), "{name}");
    }
}
