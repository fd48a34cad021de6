//! Generates the wire types, the RPC descriptions and the descriptor set from the `.proto` files of this folder.

use std::{env, fmt::Write as _, fs, path::PathBuf};

const FILES: &[&str] = &[
    "xmtp/backend/v1/envelope.proto",
    "xmtp/backend/v1/publish.proto",
    "xmtp/backend/v1/query.proto",
    "xmtp/backend/v1/subscription.proto",
    "xmtp/backend/v1/identity.proto",
    "xmtp/backend/v1/configuration.proto",
    "xmtp/backend/v1/notification.proto",
    "xmtp/identity/credential.proto",
    "grpc/health/v1/health.proto",
    "google/rpc/status.proto",
    "conclave/registry/v1/registry.proto",
    "conclave/router/v1/router.proto",
    "conclave/operator/v1/operator.proto",
    "conclave/internal/v1/internal.proto",
];

/// Writes one zero-sized type per RPC that implements `crate::Rpc`, grouped in a module per service.
struct RpcTypes;

impl prost_build::ServiceGenerator for RpcTypes {
    fn generate(&mut self, service: prost_build::Service, buffer: &mut String) {
        let module = to_snake(&service.name);
        writeln!(
            buffer,
            "/// The RPCs of `{}.{}`.\npub mod {module} {{",
            service.package, service.proto_name
        )
        .expect("writing to a string");
        for method in service.methods {
            let kind = match (method.client_streaming, method.server_streaming) {
                (false, false) => "Unary",
                (false, true) => "ServerStream",
                (true, true) => "BidirectionalStream",
                (true, false) => "ClientStream",
            };
            writeln!(
                buffer,
                "    /// `/{package}.{service}/{proto_name}`\n    #[derive(Clone, Copy, Debug)]\n    pub struct {name};\n    \
                 impl crate::Rpc for {name} {{\n        const PATH: &'static str = \"/{package}.{service}/{proto_name}\";\n        \
                 const KIND: crate::RpcKind = crate::RpcKind::{kind};\n        type Request = super::{input};\n        \
                 type Response = super::{output};\n    }}",
                package = service.package,
                service = service.proto_name,
                proto_name = method.proto_name,
                name = to_camel(&method.name),
                input = method.input_type,
                output = method.output_type,
            )
            .expect("writing to a string");
        }
        buffer.push_str("}\n");
    }
}

fn to_snake(name: &str) -> String {
    let mut out = String::new();
    for (index, letter) in name.chars().enumerate() {
        if letter.is_uppercase() && index > 0 {
            out.push('_');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

fn to_camel(name: &str) -> String {
    name.split('_')
        .map(|word| {
            let mut letters = word.chars();
            letters
                .next()
                .map(|first| first.to_uppercase().collect::<String>() + letters.as_str())
                .unwrap_or_default()
        })
        .collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for file in FILES {
        println!("cargo::rerun-if-changed={file}");
    }
    let descriptors = protox::compile(FILES, ["."])?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    fs::write(
        out.join("descriptors.binpb"),
        prost::Message::encode_to_vec(&descriptors),
    )?;
    prost_build::Config::new()
        .bytes(["."])
        .service_generator(Box::new(RpcTypes))
        .include_file("_all.rs")
        .compile_fds(descriptors)?;
    Ok(())
}
