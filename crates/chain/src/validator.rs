//! The program that judges a signature by ERC-6492, for a node to run once. Depends on nothing.
//!
//! It is the creation code of a contract that is never created: `eth_call` without a recipient runs it and returns what
//! it would have deployed. Behind the code stand its arguments: the account (32 bytes, the address on the right), the
//! hash (32 bytes), and the signature to its end. So the code finds them by its own length, whether it runs as creation
//! code or as the code of an account.
//!
//! What it does, in the order of ERC-6492:
//! 1. A signature that ends in the magic word wraps a factory, a message to it and the signature proper. If the account
//!    has no code yet, the factory is called, then the account is asked (ERC-1271). If it has code it is asked at once,
//!    and once more after the factory was called if it does not accept. A wrapper that cannot be read, a factory that
//!    fails and an account that still has no code make the signature invalid.
//! 2. Otherwise an account with code is asked.
//! 3. Otherwise 65 bytes are a recoverable ECDSA signature by the account's own key, with 27 or 28 as last byte.
//!
//! It never reverts. It answers [`ANSWER_BYTES`] bytes: the verdict, and the chain it ran on. A call that fails with most of
//! its gas gone, having had less than any transaction may use, may have failed for want of gas, which the node decides and
//! not the wallet: that is no verdict ([`UNDECIDED`]). What else fails, and however it fails, makes the signature invalid.

/// The verdict of a signature the account does not accept.
pub const INVALID: u8 = 0;
/// The verdict of a signature the account accepts.
pub const VALID: u8 = 1;
/// No verdict: the gas the node allows does not suffice.
pub const UNDECIDED: u8 = 2;
/// The length of an answer: one byte of verdict and the chain id as 32 bytes, most significant first.
pub const ANSWER_BYTES: usize = 33;

/// The last 32 bytes of a wrapped signature: 0x6492, sixteen times.
const fn wrapper_magic() -> [u8; 32] {
    let mut magic = [0x64; 32];
    let mut index = 1;
    while index < magic.len() {
        magic[index] = 0x92;
        index += 2;
    }
    magic
}

/// The program.
pub const VALIDATOR: [u8; length(LISTING)] = assemble(LISTING);

/// The program with its arguments behind it.
#[must_use]
pub fn with_arguments(account: &[u8; 20], hash: &[u8; 32], signature: &[u8]) -> Vec<u8> {
    [&VALIDATOR[..], &[0; 12], account, hash, signature].concat()
}

/// A place in the program that is jumped to, or (the last two) where its arguments stand.
#[derive(Clone, Copy)]
enum Label {
    ReadTail,
    DataRead,
    InnerRead,
    Prepare,
    AskDeployed,
    Ask,
    Plain,
    Recover,
    Invalid,
    Undecided,
    Valid,
    Answer,
    Arguments,
}

/// How many labels there are.
const LABELS: usize = Label::Arguments as usize + 1;

/// One line of the listing.
#[derive(Clone, Copy)]
enum Line {
    /// An instruction without an operand.
    Op(u8),
    /// PUSH1.
    Byte(u8),
    /// PUSH2.
    Word(u16),
    /// PUSH4.
    Four([u8; 4]),
    /// PUSH32 of the magic word.
    Magic,
    /// PUSH2 of a label's place, and this many bytes further.
    Place(Label, u16),
    /// JUMPDEST, which the label names.
    At(Label),
    /// Where the program ends and its arguments begin.
    End,
}

use Label::{
    Answer, Arguments, Ask, AskDeployed, DataRead, InnerRead, Invalid, Plain, Prepare, ReadTail, Recover,
    Undecided, Valid,
};
use Line::{At, Byte, End, Four, Magic, Op, Place, Word};

// Instructions by their names. All of them exist since the Istanbul upgrade of 2019.
const ADD: Line = Op(0x01);
const SUB: Line = Op(0x03);
const LT: Line = Op(0x10);
const GT: Line = Op(0x11);
const EQ: Line = Op(0x14);
const ISZERO: Line = Op(0x15);
const AND: Line = Op(0x16);
const NOT: Line = Op(0x19);
const SHL: Line = Op(0x1b);
const SHR: Line = Op(0x1c);
const CODESIZE: Line = Op(0x38);
const CODECOPY: Line = Op(0x39);
const EXTCODESIZE: Line = Op(0x3b);
const RETURNDATASIZE: Line = Op(0x3d);
const CHAINID: Line = Op(0x46);
const MLOAD: Line = Op(0x51);
const MSTORE: Line = Op(0x52);
const MSTORE8: Line = Op(0x53);
const JUMP: Line = Op(0x56);
const JUMPI: Line = Op(0x57);
const GAS: Line = Op(0x5a);
const JUMPDEST: u8 = 0x5b;
const PUSH1: u8 = 0x60;
const PUSH2: u8 = 0x61;
const PUSH4: u8 = 0x63;
const PUSH32: u8 = 0x7f;
const DUP2: Line = Op(0x81);
const SWAP1: Line = Op(0x90);
const SWAP2: Line = Op(0x91);
const CALL: Line = Op(0xf1);
const RETURN: Line = Op(0xf3);
const STATICCALL: Line = Op(0xfa);

// Where things lie in memory. Places of arguments are offsets in the code.
/// Words read for a moment, what calls return, and the answer.
const SCRATCH: Line = Byte(0x00);
/// The account.
const ACCOUNT: Line = Byte(0x20);
/// The hash.
const HASH: Line = Byte(0x40);
/// Where the signature to ask about stands.
const SIGNATURE: Line = Byte(0x60);
/// How long it is. While a wrapper is read: how long the wrapper is without its magic word.
const SIGNATURE_LENGTH: Line = Byte(0x80);
/// The factory, first word of a wrapper.
const FACTORY: Line = Byte(0xa0);
/// Where the message to the factory stands. At first the second word of the wrapper: its offset there.
const MESSAGE: Line = Byte(0xc0);
/// At first the third word of the wrapper: the offset of the signature proper.
const INNER: Line = Byte(0xe0);
/// How long the message to the factory is.
const MESSAGE_LENGTH: Line = Word(0x100);
/// The gas before a call.
const GAS_BEFORE: Line = Word(0x120);
/// The message to the account: a selector at the end of its word, then these. Without a contract: the input of ECRECOVER.
const ASKED_SELECTOR: Line = Word(0x140);
const ASKED: Line = Word(0x15c);
const ASKED_HASH: Line = Word(0x160);
const ASKED_OFFSET: Line = Word(0x180);
const ASKED_LENGTH: Line = Word(0x1a0);
const ASKED_SIGNATURE: Line = Word(0x1c0);
/// The bytes of that message before the signature.
const ASKED_HEAD_BYTES: Line = Byte(0x64);
/// Where ECRECOVER takes its inputs: hash, v, r and s, 32 bytes each.
const RECOVER_INPUT: Line = ASKED_HASH;
const RECOVER_V_LAST_BYTE: Line = Word(0x19f);
const RECOVER_R: Line = ASKED_LENGTH;
const RECOVER_INPUT_BYTES: Line = Byte(0x80);
const ECRECOVER: Line = Byte(1);

/// `isValidSignature(bytes32,bytes)`, and what it returns for a valid one, on the left of a word.
const IS_VALID_SIGNATURE: Line = Four([0x16, 0x26, 0xba, 0x7e]);

/// A call that leaves no more than one part in 2^4 of the gas may have lacked it: each call keeps a 64th back, so four
/// nested calls that all run dry leave less.
const SCARCE_GAS_SHIFT: Line = Byte(4);

/// A call that had this much, 2^23, did not fail for want of gas: no transaction may use more than twice that (EIP-7825).
const PLENTY_OF_GAS: Line = Four([0x00, 0x80, 0x00, 0x00]);

/// The program. The stack is noted on the right, its top last.
#[rustfmt::skip]
const LISTING: &[Line] = &[
    // The account and the hash; the signature is the rest.
    Byte(64), Place(Arguments, 0), ACCOUNT, CODECOPY,
    Place(Arguments, 64), SIGNATURE, MSTORE,
    Place(Arguments, 64), CODESIZE, SUB, SIGNATURE_LENGTH, MSTORE,

    // Is it wrapped?
    Byte(32), SIGNATURE_LENGTH, MLOAD, LT, Place(Plain, 0), JUMPI,
    Byte(32), Byte(32), CODESIZE, SUB, SCRATCH, CODECOPY,
    SCRATCH, MLOAD, Magic, EQ, ISZERO, Place(Plain, 0), JUMPI,

    // The wrapper: three words, then what the second and the third point at.
    Byte(32), SIGNATURE_LENGTH, MLOAD, SUB, SIGNATURE_LENGTH, MSTORE,
    Byte(96), SIGNATURE_LENGTH, MLOAD, LT, Place(Invalid, 0), JUMPI,
    Byte(96), Place(Arguments, 64), FACTORY, CODECOPY,
    FACTORY, MLOAD, Byte(160), SHR, Place(Invalid, 0), JUMPI,
    Place(DataRead, 0), MESSAGE, MLOAD, Place(ReadTail, 0), JUMP,
    At(DataRead),                                                // place length
    MESSAGE_LENGTH, MSTORE, MESSAGE, MSTORE,
    Place(InnerRead, 0), INNER, MLOAD, Place(ReadTail, 0), JUMP,
    At(InnerRead),                                               // place length
    SIGNATURE_LENGTH, MSTORE, SIGNATURE, MSTORE,
    ACCOUNT, MLOAD, EXTCODESIZE, Place(AskDeployed, 0), JUMPI,

    // Deploy or prepare the account, then ask it.
    At(Prepare),
    MESSAGE_LENGTH, MLOAD, MESSAGE, MLOAD, CODESIZE, ASKED_SIGNATURE, ADD, CODECOPY,
    GAS, GAS_BEFORE, MSTORE,
    Byte(0), Byte(0), MESSAGE_LENGTH, MLOAD, CODESIZE, ASKED_SIGNATURE, ADD, Byte(0), FACTORY, MLOAD, GAS, CALL,
    ACCOUNT, MLOAD, EXTCODESIZE, ISZERO, ISZERO, AND,            // called and deployed
    Place(Invalid, 0), SWAP1, Place(Ask, 0), JUMPI,              // Invalid
    SCARCE_GAS_SHIFT, GAS_BEFORE, MLOAD, SWAP1, SHR, GAS, LT,
    PLENTY_OF_GAS, GAS_BEFORE, MLOAD, LT, AND,
    ACCOUNT, MLOAD, EXTCODESIZE, ISZERO, AND, Place(Undecided, 0), JUMPI,
    JUMP,

    At(AskDeployed),
    Place(Prepare, 0), Place(Ask, 0), JUMP,

    // A signature as it is: of a contract or of a key.
    At(Plain),
    Place(Invalid, 0),                                           // Invalid
    ACCOUNT, MLOAD, EXTCODESIZE, ISZERO, Place(Recover, 0), JUMPI,

    // Asks the account. Goes to Valid, or to Undecided, or back.
    At(Ask),                                                     // back
    IS_VALID_SIGNATURE, ASKED_SELECTOR, MSTORE,
    HASH, MLOAD, ASKED_HASH, MSTORE,
    Byte(0x40), ASKED_OFFSET, MSTORE,
    SIGNATURE_LENGTH, MLOAD, ASKED_LENGTH, MSTORE,
    SIGNATURE_LENGTH, MLOAD, SIGNATURE, MLOAD, ASKED_SIGNATURE, CODECOPY,
    GAS, GAS_BEFORE, MSTORE,
    Byte(32), SCRATCH,
    Byte(31), NOT, SIGNATURE_LENGTH, MLOAD, Byte(31), ADD, AND, ASKED_HEAD_BYTES, ADD,
    ASKED, ACCOUNT, MLOAD, GAS, STATICCALL,                      // back called
    Byte(31), RETURNDATASIZE, GT, AND,                           // back answered
    IS_VALID_SIGNATURE, Byte(224), SHL, SCRATCH, MLOAD, EQ, AND, // back accepted
    Place(Valid, 0), JUMPI,                                      // back
    SCARCE_GAS_SHIFT, GAS_BEFORE, MLOAD, SWAP1, SHR, GAS, LT,
    PLENTY_OF_GAS, GAS_BEFORE, MLOAD, LT, AND, Place(Undecided, 0), JUMPI,
    JUMP,

    // Reads a length and checks that this many bytes follow it in the wrapper.
    At(ReadTail),                                                // back offset
    Byte(32), SIGNATURE_LENGTH, MLOAD, SUB, DUP2, GT, Place(Invalid, 0), JUMPI,
    Byte(32), DUP2, Place(Arguments, 64), ADD, SCRATCH, CODECOPY, SCRATCH, MLOAD, // back offset length
    DUP2, Byte(32), SIGNATURE_LENGTH, MLOAD, SUB, SUB, DUP2, GT, Place(Invalid, 0), JUMPI,
    SWAP1, Place(Arguments, 96), ADD,                            // back length place
    SWAP2, JUMP,                                                 // place length

    // The key that signed is the account.
    At(Recover),                                                 // Invalid
    Byte(65), SIGNATURE_LENGTH, MLOAD, SUB, Place(Invalid, 0), JUMPI,
    HASH, MLOAD, RECOVER_INPUT, MSTORE,
    Byte(1), Byte(1), CODESIZE, SUB, RECOVER_V_LAST_BYTE, CODECOPY,
    Byte(64), SIGNATURE, MLOAD, RECOVER_R, CODECOPY,
    Byte(32), SCRATCH, RECOVER_INPUT_BYTES, RECOVER_INPUT, ECRECOVER, GAS, STATICCALL,
    ISZERO, Place(Undecided, 0), JUMPI,
    Byte(31), RETURNDATASIZE, GT, SCRATCH, MLOAD, ACCOUNT, MLOAD, EQ, AND, Place(Valid, 0), JUMPI,

    At(Invalid), Byte(INVALID), Place(Answer, 0), JUMP,
    At(Undecided), Byte(UNDECIDED), Place(Answer, 0), JUMP,
    At(Valid), Byte(VALID),
    At(Answer),                                                  // verdict
    SCRATCH, MSTORE8, CHAINID, Byte(1), MSTORE, Byte(33), SCRATCH, RETURN,
    End,
];

const fn length(listing: &[Line]) -> usize {
    let mut length = 0;
    let mut index = 0;
    while index < listing.len() {
        length += line_length(listing[index]);
        index += 1;
    }
    length
}

const fn line_length(line: Line) -> usize {
    match line {
        Op(_) | At(_) => 1,
        Byte(_) => 2,
        Word(_) | Place(..) => 3,
        Four(_) => 5,
        Magic => 33,
        End => 0,
    }
}

#[allow(clippy::cast_possible_truncation, reason = "a program of less than 64 KiB")]
const fn places(listing: &[Line]) -> [u16; LABELS] {
    let mut places = [0; LABELS];
    let mut at = 0;
    let mut index = 0;
    while index < listing.len() {
        match listing[index] {
            At(label) => places[label as usize] = at as u16,
            End => places[Arguments as usize] = at as u16,
            _ => {}
        }
        at += line_length(listing[index]);
        index += 1;
    }
    places
}

const fn assemble<const N: usize>(listing: &[Line]) -> [u8; N] {
    let places = places(listing);
    let mut code = [0; N];
    let mut at = 0;
    let mut index = 0;
    while index < listing.len() {
        match listing[index] {
            Op(op) => code[at] = op,
            At(_) => code[at] = JUMPDEST,
            Byte(value) => write(&mut code, at, PUSH1, &[value]),
            Word(value) => write(&mut code, at, PUSH2, &value.to_be_bytes()),
            Place(label, more) => {
                write(
                    &mut code,
                    at,
                    PUSH2,
                    &(places[label as usize] + more).to_be_bytes(),
                );
            }
            Four(value) => write(&mut code, at, PUSH4, &value),
            Magic => write(&mut code, at, PUSH32, &wrapper_magic()),
            End => {}
        }
        at += line_length(listing[index]);
        index += 1;
    }
    code
}

const fn write(code: &mut [u8], at: usize, op: u8, operand: &[u8]) {
    code[at] = op;
    let mut index = 0;
    while index < operand.len() {
        code[at + 1 + index] = operand[index];
        index += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The offsets of instructions, and the ends of their operands.
    fn instructions() -> Vec<(usize, u8)> {
        let mut at = 0;
        let mut found = Vec::new();
        while let Some(op) = VALIDATOR.get(at) {
            found.push((at, *op));
            at += match op {
                PUSH1..=PUSH32 => 2 + usize::from(op - PUSH1),
                _ => 1,
            };
        }
        assert_eq!(at, VALIDATOR.len());
        found
    }

    #[test]
    fn every_jump_goes_to_a_place_that_is_named() {
        let places = places(LISTING);
        let destinations: Vec<usize> = instructions()
            .into_iter()
            .filter_map(|(at, op)| (op == JUMPDEST).then_some(at))
            .collect();
        let named: Vec<usize> = places[..Arguments as usize]
            .iter()
            .map(|at| usize::from(*at))
            .collect();
        assert_eq!(usize::from(places[Arguments as usize]), VALIDATOR.len());
        assert_eq!(destinations.len(), named.len());
        assert!(named.iter().all(|at| destinations.contains(at)));
    }

    #[test]
    fn arguments_stand_behind_the_code_account_first() {
        let program = with_arguments(&[0xaa; 20], &[0xbb; 32], &[0xcc; 3]);
        let (code, arguments) = program.split_at(VALIDATOR.len());
        assert_eq!(code, VALIDATOR);
        assert_eq!(
            arguments,
            [&[0; 12][..], &[0xaa; 20], &[0xbb; 32], &[0xcc; 3]].concat()
        );
    }
}
