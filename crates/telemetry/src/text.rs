//! Names and JSON strings. Depends on nothing of this crate.

use conclave_grpc_web::Code;

/// The name of a code as logs and counters have it: `OK`, `InvalidArgument`.
pub(crate) fn code_name(code: Code) -> String {
    if code == Code::Ok {
        return code.name().to_owned();
    }
    let mut begins_word = true;
    let mut name = String::new();
    for letter in code.name().chars() {
        match letter {
            '_' => begins_word = true,
            _ if begins_word => {
                name.push(letter);
                begins_word = false;
            }
            _ => name.push(letter.to_ascii_lowercase()),
        }
    }
    name
}

/// Writes a JSON string.
pub(crate) fn push_json_string(line: &mut String, text: &str) {
    line.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => line.extend(['\\', letter]),
            '\0'..='\u{1f}' => line.push_str(&format!("\\u{:04x}", u32::from(letter))),
            _ => line.push(letter),
        }
    }
    line.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn codes_have_the_names_of_the_catalogue() {
        assert_eq!(code_name(Code::Ok), "OK");
        assert_eq!(code_name(Code::InvalidArgument), "InvalidArgument");
        assert_eq!(code_name(Code::Unauthenticated), "Unauthenticated");
        assert_eq!(code_name(Code::DataLoss), "DataLoss");
    }

    proptest! {
        #[test]
        fn any_text_is_read_back_from_its_json_string(text in any::<String>()) {
            let mut line = String::new();
            push_json_string(&mut line, &text);
            prop_assert_eq!(serde_json::from_str::<String>(&line).ok(), Some(text));
        }
    }
}
