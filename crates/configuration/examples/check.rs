//! Says whether variables make a deployment, and what of it matters to who operates it. `cargo xtask doctor` asks this with
//! the variables on standard input: names and values in turn, each ended by a zero byte. `=` stands before the value of one that
//! the Worker sees as a text, a number or true or false; nothing is said of any other. No secret is shown.

use std::{
    io::{self, Read as _},
    process::ExitCode,
    time::{SystemTime, UNIX_EPOCH},
};

use conclave_configuration::{Settings, Value};
use conclave_credentials::{Credentials, configuration::SigningKeys};

fn main() -> io::Result<ExitCode> {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input)?;
    let words: Vec<&str> = input.split('\0').collect();
    let variables = words.chunks_exact(2).map(|pair| {
        let text = pair[1].strip_prefix('=');
        (
            pair[0],
            text.map_or(Value::Other, |text| Value::Text(text.to_owned())),
        )
    });
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
    match Settings::from_variables(variables, now_ns) {
        Ok(settings) => {
            print!("{}", described(&settings));
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            println!("cannot be used      {error}");
            Ok(ExitCode::FAILURE)
        }
    }
}

fn described(settings: &Settings) -> String {
    let set = |is_set: bool, yes: &str, no: &str| if is_set { yes } else { no }.to_owned();
    let credentials = match &settings.credentials {
        Some(credentials) => asked_for(credentials),
        None => "none asked for: anybody who reaches it may call".to_owned(),
    };
    let registry = &settings.registry;
    let lines = [
        ("identifier", settings.backend.identifier.clone()),
        ("shards", settings.backend.shard_count.to_string()),
        ("wallet chains", settings.backend.chains.names().join(", ")),
        ("credentials", credentials),
        (
            "registration",
            set(
                registry.admission_token.is_some(),
                "with the admission token",
                "open to anybody",
            ),
        ),
        (
            "registry seed",
            set(
                registry.signing_seed.is_some(),
                "given",
                "minted once, kept in the Registry's storage",
            ),
        ),
        (
            "/metrics",
            set(
                settings.operations.token.is_some(),
                "with the operator's token",
                "not served: no operator's token",
            ),
        ),
        (
            "request log",
            set(settings.operations.request_logger, "on", "off"),
        ),
    ];
    let line = |(name, value): &(&str, String)| {
        let value = if value.is_empty() { "none" } else { value };
        format!("{name:<19} {value}\n")
    };
    lines.iter().map(line).collect()
}

fn asked_for(credentials: &Credentials) -> String {
    let names: Vec<&str> = credentials.api_keys.names().collect();
    let api_keys = match &names[..] {
        [] => "no API key".to_owned(),
        names => format!("API keys {}", names.join(", ")),
    };
    let signing_keys = match &credentials.signing_keys {
        SigningKeys::None => "no tokens".to_owned(),
        SigningKeys::Inline(keys) => format!("tokens of {} configured keys", keys.keys().len()),
        SigningKeys::Fetched { url, .. } => format!("tokens of the key set at {}", url.host()),
    };
    format!("{api_keys}; {signing_keys}")
}
