// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

// Smart contract wallets for tests, good and bad, compiled by tests/support/evm.mjs.

bytes4 constant ACCEPTED = 0x1626ba7e;
bytes4 constant REFUSED = 0xffffffff;

/// Accepts what its owner's key signed. The owner can change.
contract OwnedWallet {
    address public owner;

    constructor(address first) {
        owner = first;
    }

    function setOwner(address next) external {
        owner = next;
    }

    function isValidSignature(bytes32 hash, bytes calldata signature) external view virtual returns (bytes4) {
        return accepts(hash, signature) ? ACCEPTED : REFUSED;
    }

    function accepts(bytes32 hash, bytes calldata signature) internal view returns (bool) {
        if (signature.length != 65) return false;
        address signer = ecrecover(hash, uint8(signature[64]), bytes32(signature[0:32]), bytes32(signature[32:64]));
        return signer != address(0) && signer == owner;
    }
}

/// Accepts what its owner signed once somebody has prepared it, and fails before.
contract PreparedWallet is OwnedWallet {
    bool public prepared;

    constructor(address first) OwnedWallet(first) {}

    function prepare() external {
        prepared = true;
    }

    function isValidSignature(bytes32 hash, bytes calldata signature) external view override returns (bytes4) {
        require(prepared, "not prepared");
        return accepts(hash, signature) ? ACCEPTED : REFUSED;
    }
}

/// Accepts a signature that is the hash of itself, however long it is.
contract HashWallet {
    function isValidSignature(bytes32 hash, bytes calldata signature) external pure returns (bytes4) {
        return keccak256(signature) == hash ? ACCEPTED : REFUSED;
    }
}

/// Fails whatever it is asked, with the value of acceptance as its reason.
contract FailingWallet {
    fallback() external {
        assembly {
            mstore(0, shl(224, 0x1626ba7e))
            revert(0, 32)
        }
    }
}

/// Answers with four bytes, where a word is due.
contract ShortWallet {
    fallback() external {
        assembly {
            mstore(0, shl(224, 0x1626ba7e))
            return(0, 4)
        }
    }
}

/// Answers with a word that has the value of acceptance at its wrong end.
contract MisalignedWallet {
    fallback() external {
        assembly {
            mstore(0, 0x1626ba7e)
            return(0, 32)
        }
    }
}

/// Would accept, but writes before it does, which nobody who asks allows.
contract WritingWallet {
    uint256 public asked;

    fallback() external {
        asked += 1;
        assembly {
            mstore(0, shl(224, 0x1626ba7e))
            return(0, 32)
        }
    }
}

/// Uses all the gas there is.
contract EndlessWallet {
    fallback() external {
        assembly {
            for {} 1 {} {}
        }
    }
}
