//! Fixed vectors, computed by a program that shares nothing with this crate: a JSON printer with sorted members and a
//! SHA-256 of its own. Two members with the deterministic cards of the Identity reference, one GENESIS, one re-anchor at
//! it, one POST under that.

pub(crate) const CARD_A: &str = r#"{"payload":"eyJhZ2VudElkIjoiYWd0X0FRRUJBUUVCQVFFQkFRRUJBUUVCQVEiLCJhZ2VudE5hbWUiOiJhbGljZS1hZ2VudCIsImlzc3VlZEF0IjoiMjAyNi0xMC0yMVQxMjowMDowMFoiLCJraW5kIjoiYWdlbnRDYXJkIiwicHJpbmNpcGFsSWQiOiJwcm5fRVJFUkVSRVJFUkVSRVJFUkVSRVJFUSIsInB1YmxpY0tleSI6eyJjcnYiOiJFZDI1NTE5Iiwia3R5IjoiT0tQIiwieCI6IlBVQVh3LWhEaVZxU3R3cW5UUnQtdkp5WUxNOHV4SmFNd00xVjhTcjBaZ3cifSwic2hhcm5lc3NWZXJzaW9uIjoiMjAyNi4xMDIxLjMifQ","signatures":[{"protected":"eyJhbGciOiJFZDI1NTE5Iiwia2lkIjoidXJuOmlldGY6cGFyYW1zOm9hdXRoOmp3ay10aHVtYnByaW50OnNoYS0yNTY6a1ByS19xbXhWV2FZVkE5d3dCRjZJdW8zdlZ6ejdUeEhDVHdYQnlnclM0ayIsInR5cCI6ImFwcGxpY2F0aW9uL3ZuZC5tb2x0emFwLmFnZW50LWNhcmQrandzIn0","signature":"uwiQuJpoZ3IJAKfqIzU8WLsXecrOkP6ouP-dC3K8L99Zpcbb8jgN2yMgDDWyLIeONrIttWlM7LqfSj6SUGfAAQ"}]}"#;

pub(crate) const CARD_B: &str = r#"{"payload":"eyJhZ2VudElkIjoiYWd0X0FnSUNBZ0lDQWdJQ0FnSUNBZ0lDQWciLCJhZ2VudE5hbWUiOiJib2ItYWdlbnQiLCJpc3N1ZWRBdCI6IjIwMjYtMTAtMjFUMTI6MDA6MDBaIiwia2luZCI6ImFnZW50Q2FyZCIsInByaW5jaXBhbElkIjoicHJuX0lpSWlJaUlpSWlJaUlpSWlJaUlpSWciLCJwdWJsaWNLZXkiOnsiY3J2IjoiRWQyNTUxOSIsImt0eSI6Ik9LUCIsIngiOiJfRkhOam1JWW9hT05wSDdRQWpEd1dBZ1c3Uk82TXdPc1hldVJGVWlRZ0NVIn0sInNoYXJuZXNzVmVyc2lvbiI6IjIwMjYuMTAyMS4zIn0","signatures":[{"protected":"eyJhbGciOiJFZDI1NTE5Iiwia2lkIjoidXJuOmlldGY6cGFyYW1zOm9hdXRoOmp3ay10aHVtYnByaW50OnNoYS0yNTY6a1ByS19xbXhWV2FZVkE5d3dCRjZJdW8zdlZ6ejdUeEhDVHdYQnlnclM0ayIsInR5cCI6ImFwcGxpY2F0aW9uL3ZuZC5tb2x0emFwLmFnZW50LWNhcmQrandzIn0","signature":"v0BLkyzOdOEgoFA2XtLARA6EF_iNrqqb99RmTGZ173maWBqg7sqSlaoz5bTtlWsxpTUVH4U9Bu_hxWVgiNGvBA"}]}"#;

pub(crate) const IDENTITY: &str = r#"{"kind":"conversation_identity","memberAgentIds":["agt_AQEBAQEBAQEBAQEBAQEBAQ","agt_AgICAgICAgICAgICAgICAg"]}"#;

pub(crate) const CONVERSATION_ID: &str = r#"cnv_ayAzGhXxiqHL-jpjK2ibrpFBPDJJsYgigy_yX3ZT_uw"#;

pub(crate) const MEMBERSHIP_HASH: &str = r#"mbr_I7yodg_2PRy4ME41BgDVgPNbvfNAdh8x5ahIoiEMofM"#;

pub(crate) const INTENT: &str = r#"{"authorAgentId":"agt_AQEBAQEBAQEBAQEBAQEBAQ","content":[{"text":"héllo \"€\"\n","type":"text"},{"type":"data","value":{"a":1e+21,"é":[1,-1.5,null,true]}}],"conversationId":"cnv_ayAzGhXxiqHL-jpjK2ibrpFBPDJJsYgigy_yX3ZT_uw","kind":"post_intent","membershipHash":"mbr_I7yodg_2PRy4ME41BgDVgPNbvfNAdh8x5ahIoiEMofM","postId":"pst_CwsLCwsLCwsLCwsLCwsLCwsLCwsLCwsLCwsLCwsLCws","sharnessVersion":"2026.1021.3"}"#;

pub(crate) const INTENT_HASH: &str = r#"pit_nr3DKQ4BwbsMCNTXfGhtl5dZfbdzgEXiZZeC-uTal20"#;

pub(crate) const GENESIS_ANCHOR: &str = r#"{"conversationId":"cnv_ayAzGhXxiqHL-jpjK2ibrpFBPDJJsYgigy_yX3ZT_uw","kind":"genesis_anchor_body","membershipHash":"mbr_I7yodg_2PRy4ME41BgDVgPNbvfNAdh8x5ahIoiEMofM","routerInstanceId":"rti_CgoKCgoKCgoKCgoKCgoKCg","sharnessVersion":"2026.1021.3"}"#;

pub(crate) const GENESIS_ANCHOR_HASH: &str = r#"anc_vxEXGQITCubemJy1asS5V1_JjjWZrMANvoDgMlUyc0Y"#;

pub(crate) const GENESIS_ACTION_HASH: &str = r#"ach_r9mpR4f3Nqa7B0sKtLmIzwnpFd4xwLqUT-qcOIoqz4Q"#;

pub(crate) const GENESIS_RECORD_HASH: &str = r#"rch_p2k6DUZn0gjEwoP2RqR2AKkVVSPQNtBmBrAvzZ1RY3w"#;

pub(crate) const REANCHOR: &str = r#"{"conversationId":"cnv_ayAzGhXxiqHL-jpjK2ibrpFBPDJJsYgigy_yX3ZT_uw","kind":"reanchor_body","membershipHash":"mbr_I7yodg_2PRy4ME41BgDVgPNbvfNAdh8x5ahIoiEMofM","previousAnchorHash":"anc_vxEXGQITCubemJy1asS5V1_JjjWZrMANvoDgMlUyc0Y","routerInstanceId":"rti_DAwMDAwMDAwMDAwMDAwMDA","selectedRecordHash":"rch_p2k6DUZn0gjEwoP2RqR2AKkVVSPQNtBmBrAvzZ1RY3w","sharnessVersion":"2026.1021.3"}"#;

pub(crate) const REANCHOR_HASH: &str = r#"anc_fCTPk_zRwXOPJk0ElmnsIi7RTRPf_8W9SDWnAkfQyEE"#;

pub(crate) const POST_ACTION: &str = r#"{"anchorHash":"anc_fCTPk_zRwXOPJk0ElmnsIi7RTRPf_8W9SDWnAkfQyEE","conversationId":"cnv_ayAzGhXxiqHL-jpjK2ibrpFBPDJJsYgigy_yX3ZT_uw","kind":"POST","membershipHash":"mbr_I7yodg_2PRy4ME41BgDVgPNbvfNAdh8x5ahIoiEMofM","postIntent":{"authorAgentId":"agt_AQEBAQEBAQEBAQEBAQEBAQ","content":[{"text":"héllo \"€\"\n","type":"text"},{"type":"data","value":{"a":1e+21,"é":[1,-1.5,null,true]}}],"conversationId":"cnv_ayAzGhXxiqHL-jpjK2ibrpFBPDJJsYgigy_yX3ZT_uw","kind":"post_intent","membershipHash":"mbr_I7yodg_2PRy4ME41BgDVgPNbvfNAdh8x5ahIoiEMofM","postId":"pst_CwsLCwsLCwsLCwsLCwsLCwsLCwsLCwsLCwsLCwsLCws","sharnessVersion":"2026.1021.3"},"postIntentHash":"pit_nr3DKQ4BwbsMCNTXfGhtl5dZfbdzgEXiZZeC-uTal20","previousRecordHash":"rch_p2k6DUZn0gjEwoP2RqR2AKkVVSPQNtBmBrAvzZ1RY3w","sharnessVersion":"2026.1021.3"}"#;

pub(crate) const POST_ACTION_HASH: &str = r#"ach_cQokMbqdGT-PHJ00N7W8iAlBfWbKNXmZsVT3vhDFWeM"#;

pub(crate) const POST_RECORD_HASH: &str = r#"rch_s-6SLLwHmKo40REhn0LfRrpRcIV25lcJv1iub52BrhM"#;

pub(crate) const ACTION_STATEMENT: &str = r#"{"actionHash":"ach_r9mpR4f3Nqa7B0sKtLmIzwnpFd4xwLqUT-qcOIoqz4Q","kind":"action_signature","sharnessVersion":"2026.1021.3","signerAgentId":"agt_AQEBAQEBAQEBAQEBAQEBAQ"}"#;

pub(crate) const ACTION_MESSAGE_ID: &str = r#"msg_FU1pluNlHmVZ07ljkZ-N-Q"#;

pub(crate) const DURABILITY_STATEMENT: &str = r#"{"conversationId":"cnv_ayAzGhXxiqHL-jpjK2ibrpFBPDJJsYgigy_yX3ZT_uw","kind":"durability_vote","membershipHash":"mbr_I7yodg_2PRy4ME41BgDVgPNbvfNAdh8x5ahIoiEMofM","recordHash":"rch_p2k6DUZn0gjEwoP2RqR2AKkVVSPQNtBmBrAvzZ1RY3w","sharnessVersion":"2026.1021.3","signerAgentId":"agt_AgICAgICAgICAgICAgICAg"}"#;

pub(crate) const DURABILITY_MESSAGE_ID: &str = r#"msg_DSUsS-Q1d8KWVu1vvKFdzw"#;

pub(crate) const REANCHOR_STATEMENT: &str = r#"{"anchorHash":"anc_fCTPk_zRwXOPJk0ElmnsIi7RTRPf_8W9SDWnAkfQyEE","kind":"reanchor_vote","reanchor":{"conversationId":"cnv_ayAzGhXxiqHL-jpjK2ibrpFBPDJJsYgigy_yX3ZT_uw","kind":"reanchor_body","membershipHash":"mbr_I7yodg_2PRy4ME41BgDVgPNbvfNAdh8x5ahIoiEMofM","previousAnchorHash":"anc_vxEXGQITCubemJy1asS5V1_JjjWZrMANvoDgMlUyc0Y","routerInstanceId":"rti_DAwMDAwMDAwMDAwMDAwMDA","selectedRecordHash":"rch_p2k6DUZn0gjEwoP2RqR2AKkVVSPQNtBmBrAvzZ1RY3w","sharnessVersion":"2026.1021.3"},"sharnessVersion":"2026.1021.3","signerAgentId":"agt_AQEBAQEBAQEBAQEBAQEBAQ"}"#;

pub(crate) const REANCHOR_MESSAGE_ID: &str = r#"msg_i-8fRn_7gAwDAEiQiBMGyg"#;

pub(crate) const ATTESTATION_STATEMENT: &str = r#"{"hasMore":false,"itemHash":null,"itemKind":"incomplete","kind":"catch_up_attestation","request":{"conversationId":"cnv_ayAzGhXxiqHL-jpjK2ibrpFBPDJJsYgigy_yX3ZT_uw","kind":"catch_up_request","knownAnchorHash":null,"knownRecordHash":null,"membershipHash":"mbr_I7yodg_2PRy4ME41BgDVgPNbvfNAdh8x5ahIoiEMofM","requesterAgentId":"agt_AgICAgICAgICAgICAgICAg","sharnessVersion":"2026.1021.3"},"sharnessVersion":"2026.1021.3","signerAgentId":"agt_AQEBAQEBAQEBAQEBAQEBAQ"}"#;

pub(crate) const ATTESTATION_MESSAGE_ID: &str = r#"msg_TLcskc9LowDLJHuRnLzkhw"#;
