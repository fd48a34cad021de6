//! The vectors of RFC 8785 that our encoder and our decoder have to satisfy.

use conclave_harness::canonical_json::{CanonicalJsonError, Limits, decode, encode, try_encode};
use serde_json::Value;

/// Appendix B: the bits of a double and how it is printed.
const NUMBERS: &[(u64, &str)] = &[
    (0x0000_0000_0000_0000, "0"),
    (0x0000_0000_0000_0001, "5e-324"),
    (0x8000_0000_0000_0001, "-5e-324"),
    (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
    (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
    (0x4340_0000_0000_0000, "9007199254740992"),
    (0xc340_0000_0000_0000, "-9007199254740992"),
    (0x4430_0000_0000_0000, "295147905179352830000"),
    (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
    (0x44b5_2d02_c7e1_4af6, "1e+23"),
    (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
    (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
    (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
    (0x444b_1ae4_d6e2_ef50, "1e+21"),
    (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
    (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
    (0x41b3_de43_5555_5553, "333333333.3333332"),
    (0x41b3_de43_5555_5554, "333333333.33333325"),
    (0x41b3_de43_5555_5555, "333333333.3333333"),
    (0x41b3_de43_5555_5556, "333333333.3333334"),
    (0x41b3_de43_5555_5557, "333333333.33333343"),
    (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
    (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
];

fn canonical(text: &str) -> String {
    String::from_utf8(encode(&serde_json::from_str::<Value>(text).unwrap())).unwrap()
}

#[test]
fn numbers_print_and_read_as_in_appendix_b() {
    for (bits, text) in NUMBERS {
        let number = f64::from_bits(*bits);
        assert_eq!(encode(&number), text.as_bytes(), "{bits:016x}");
        let read: Value = decode(text.as_bytes(), Limits::identity(64)).unwrap();
        assert_eq!(read.as_f64().unwrap().to_bits(), *bits, "{text}");
    }
    assert_eq!(encode(&-0.0_f64), b"0");
    for bits in [
        0x7fff_ffff_ffff_ffff,
        0x7ff0_0000_0000_0000,
        0xfff0_0000_0000_0000,
    ] {
        let error = try_encode(&f64::from_bits(bits)).unwrap_err();
        assert!(matches!(error, CanonicalJsonError::NoJsonForm { .. }));
    }
}

#[test]
fn the_sample_of_section_3_2_2_is_reproduced() {
    let input = r#"{
        "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
    }"#;
    assert_eq!(
        canonical(input),
        concat!(
            r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"#,
            "\"string\":\"\u{20ac}$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}",
        )
    );
}

#[test]
fn members_stand_in_the_order_of_their_utf16_code_units() {
    let input = r#"{
        "\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One", "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis"
    }"#;
    // In UTF-8 order the emoji (U+1F600) would follow U+FB33; its first code unit, D83D, precedes FB33.
    let wanted = "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\
                  \"\u{f6}\":\"Latin Small Letter O With Diaeresis\",\"\u{20ac}\":\"Euro Sign\",\
                  \"\u{1f600}\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}";
    assert_eq!(canonical(input), wanted);
    assert!(decode::<Value>(wanted.as_bytes(), Limits::identity(1_024)).is_ok());
}

#[test]
fn only_the_escapes_of_section_3_2_2_2_are_written() {
    let every_control: String = (0..=0x1f_u8)
        .map(char::from)
        .chain("\u{7f}\"\\/\u{2028}".chars())
        .collect();
    let wanted = "\"\\u0000\\u0001\\u0002\\u0003\\u0004\\u0005\\u0006\\u0007\\b\\t\\n\\u000b\\f\\r\\u000e\\u000f\
                  \\u0010\\u0011\\u0012\\u0013\\u0014\\u0015\\u0016\\u0017\\u0018\\u0019\\u001a\\u001b\\u001c\\u001d\
                  \\u001e\\u001f\u{7f}\\\"\\\\/\u{2028}\"";
    assert_eq!(String::from_utf8(encode(&every_control)).unwrap(), wanted);
    let read: String = decode(wanted.as_bytes(), Limits::identity(1_024)).unwrap();
    assert_eq!(read, every_control);
}

// CONV-B02
#[test]
fn integers_beyond_the_doubles_are_printed_as_the_double_they_become() {
    assert_eq!(encode(&u64::MAX), b"18446744073709552000");
    assert_eq!(encode(&i64::MIN), b"-9223372036854776000");
    assert_eq!(encode(&9_007_199_254_740_993_u64), b"9007199254740992");
}
