//! Configuration, health, and what is not there.

use bytes::Bytes;
use conclave_grpc_web::{Code, Status};
use conclave_proto::{
    RpcKind,
    conclave::router::v1::router_service::GetInstance,
    grpc::health::v1::{
        HealthCheckRequest, HealthCheckResponse, HealthListRequest, health,
        health_check_response::ServingStatus,
    },
    xmtp::backend::v1::{
        CreateUploadRequest, GetConfigurationRequest, RegisterRequest, Subscription, UnregisterRequest,
        UpdateSubscriptionsRequest,
        attachment_service::CreateUpload,
        configuration_service::GetConfiguration,
        notification_service::{Register, Unregister, UpdateSubscriptions},
    },
};
use conclave_topiclog::{Backend, CallContext, Configuration, platform::ObjectName};
use prost::Message as _;

use crate::{
    client::*,
    world::{CallFate, Worker, World},
};

fn unary(world: &World, path: &'static str) -> conclave_topiclog::Reply {
    let backend = world.client();
    world.run(async move {
        backend
            .unary(path, Bytes::new(), 0, &CallContext::default())
            .await
    })
}

#[test]
fn the_published_configuration_is_the_enforced_one() {
    let mut configuration = Configuration {
        identifier: "here".to_owned(),
        ..Configuration::default()
    };
    configuration.limits.max_query_topics = 1;
    let world = World::with(configuration);
    let published = world
        .call::<GetConfiguration>(&GetConfigurationRequest {})
        .expect("a configuration");
    assert_eq!(published.identifier, "here");
    assert_eq!(published.limits.map(|limits| limits.max_query_topics), Some(1));
    assert!(!published.auth.expect("auth").enabled);
    let topic = group_topic(&group(1));
    assert!(world.query(vec![query_of(&topic, 0)], 1).is_ok());
    assert!(world.query(vec![query_of(&topic, 0); 2], 1).is_err());
}

#[test]
fn the_configuration_is_not_bound_by_the_response_budget() {
    let mut configuration = Configuration::default();
    configuration.limits.max_envelope_bytes = 1;
    configuration.limits.max_response_bytes = 257;
    configuration.identifier = "x".repeat(256);
    let world = World::with(configuration);
    assert!(
        world
            .call::<GetConfiguration>(&GetConfigurationRequest {})
            .is_ok()
    );
}

#[test]
fn every_service_shares_one_health() {
    for shards in [1, 4] {
        let world = World::new(shards);
        let check = |service: &str| {
            world.call::<health::Check>(&HealthCheckRequest {
                service: service.to_owned(),
            })
        };
        for service in [
            "",
            "xmtp.backend.v1.PublishService",
            "conclave.router.v1.RouterService",
        ] {
            assert_eq!(check(service).expect("a status").status(), ServingStatus::Serving);
        }
        assert_eq!(check("nothing").expect_err("unknown").code, Code::NotFound);
        let list = world.call::<health::List>(&HealthListRequest {}).expect("a list");
        assert!(
            list.statuses
                .values()
                .all(|status| status.status() == ServingStatus::Serving)
        );
        assert!(list.statuses.contains_key("xmtp.backend.v1.SubscriptionService"));
        world.on_call(|_, _| CallFate::LoseAnswer);
        let check = world.call::<health::Check>(&HealthCheckRequest::default());
        assert_eq!(check.expect("a status").status(), ServingStatus::NotServing);
    }
}

#[test]
fn a_watch_reports_the_health_now_and_whenever_it_changes() {
    let world = World::new(1);
    let watch = |service: &str| {
        let backend = world.client();
        let message = Bytes::from(
            HealthCheckRequest {
                service: service.to_owned(),
            }
            .encode_to_vec(),
        );
        world
            .run(async move {
                backend
                    .stream(
                        "/grpc.health.v1.Health/Watch",
                        message,
                        0,
                        &CallContext::default(),
                    )
                    .await
            })
            .expect("a stream")
    };
    // A watch runs only while it is read, so each look is given time to finish.
    let look = |stream: conclave_topiclog::StreamSession<Worker>| {
        let seen = world.start(async move {
            let mut stream = stream;
            let frame = stream.next().await.expect("a frame").expect("no failure");
            (
                HealthCheckResponse::decode(&frame[..]).expect("decodes").status(),
                stream,
            )
        });
        world.settle();
        seen
    };
    let (status, stream) = look(watch("")).take().expect("at once");
    assert_eq!(status, ServingStatus::Serving);
    let seen = look(stream);
    world.advance_ms(60_000);
    assert!(seen.take().is_none());
    world.on_call(|to, _| {
        if to == ObjectName::Shard(0) {
            CallFate::LoseRequest
        } else {
            CallFate::Answer
        }
    });
    world.advance_ms(60_000);
    assert_eq!(seen.take().expect("a change").0, ServingStatus::NotServing);
    let (status, stream) = look(watch("nothing")).take().expect("at once");
    assert_eq!(status, ServingStatus::ServiceUnknown);
    assert!(look(stream).take().is_none());
}

// API-281
#[test]
fn what_is_called_in_another_way_and_what_does_not_exist_are_unimplemented() {
    let world = World::new(1);
    for (path, known) in [
        ("/xmtp.backend.v1.SubscriptionService/Subscribe", true),
        ("/xmtp.backend.v1.NotificationService/Subscribe", false),
        ("/xmtp.backend.v1.SubscriptionService/SubscribeStatic", true),
        ("/other.Service/Method", false),
        ("", false),
    ] {
        let reply = unary(&world, path);
        assert_eq!(
            reply.result.expect_err("refused").code,
            Code::Unimplemented,
            "{path}"
        );
        assert_eq!(Backend::<Worker>::kind(path).is_some(), known, "{path}");
    }
    let kinds = [
        ("/xmtp.backend.v1.PublishService/Publish", RpcKind::Unary),
        (
            "/xmtp.backend.v1.SubscriptionService/SubscribeStatic",
            RpcKind::ServerStream,
        ),
        (
            "/xmtp.backend.v1.SubscriptionService/Subscribe",
            RpcKind::BidirectionalStream,
        ),
        ("/grpc.health.v1.Health/Watch", RpcKind::ServerStream),
    ];
    for (path, kind) in kinds {
        assert_eq!(Backend::<Worker>::kind(path), Some(kind));
    }
}

#[test]
fn registry_calls_reach_the_registry_as_they_are() {
    let world = World::new(1);
    let backend = world.client();
    let reply = world.run(async move {
        let message = Bytes::from_static(b"\x0a\x01x");
        backend
            .unary(
                "/conclave.registry.v1.RegistryService/Lookup",
                message,
                3,
                &CallContext::default(),
            )
            .await
    });
    assert_eq!(reply.result.expect("echoed"), b"\x0a\x01x"[..]);
    assert_eq!(
        world.calls(
            ObjectName::Registry,
            "/conclave.registry.v1.RegistryService/Lookup"
        ),
        1
    );
}

#[test]
fn the_router_instance_is_the_one_of_the_status() {
    for shards in [1, 4] {
        let world = World::new(shards);
        let instance = world
            .call::<GetInstance>(&Default::default())
            .expect("an instance");
        assert_eq!(instance.router_instance_id, world.status().router_instance_id);
    }
}

#[test]
fn a_request_that_does_not_decode_is_an_invalid_argument() {
    let world = World::new(1);
    for path in [
        "/xmtp.backend.v1.QueryService/Query",
        "/xmtp.backend.v1.QueryService/QueryNewest",
        "/xmtp.backend.v1.PublishService/Publish",
        "/grpc.health.v1.Health/Check",
    ] {
        let backend = world.client();
        let reply = world.run(async move {
            backend
                .unary(
                    path,
                    Bytes::from_static(&[0xff, 0xff]),
                    2,
                    &CallContext::default(),
                )
                .await
        });
        assert_eq!(
            reply.result.expect_err("refused").code,
            Code::InvalidArgument,
            "{path}"
        );
    }
}

/// A deployment without push and without storage (companions 5.6).
#[test]
fn push_and_attachments_are_answered_as_by_a_deployment_that_has_none() {
    let world = World::new(1);
    for (length, refused) in [(0, true), (31, true), (32, false), (33, true)] {
        let bytes = || Bytes::from(vec![7; length]);
        for (id, secret) in [
            (bytes(), Bytes::from(vec![7; 32])),
            (Bytes::from(vec![7; 32]), bytes()),
        ] {
            let expected = |code| if refused { Code::InvalidArgument } else { code };
            let register = world.call::<Register>(&RegisterRequest {
                recipient_id: id.clone(),
                recipient_secret: secret.clone(),
                delivery: None,
            });
            let unregister = world.call::<Unregister>(&UnregisterRequest {
                recipient_id: id.clone(),
                recipient_secret: secret.clone(),
            });
            let update = world.call::<UpdateSubscriptions>(&UpdateSubscriptionsRequest {
                recipient_id: id,
                recipient_secret: secret,
                adds: vec![Subscription::default()],
                removes: Vec::new(),
            });
            let code = |result: Result<(), Status>| result.expect_err("no recipient").code;
            assert_eq!(
                code(register.map(|_| ())),
                expected(Code::FailedPrecondition),
                "{length}"
            );
            assert_eq!(code(unregister.map(|_| ())), expected(Code::NotFound), "{length}");
            assert_eq!(code(update.map(|_| ())), expected(Code::NotFound), "{length}");
        }
    }
    for content_digest in [Bytes::new(), Bytes::from(vec![7; 32])] {
        let upload = world.call::<CreateUpload>(&CreateUploadRequest {
            content_digest,
            content_length: 1,
        });
        assert_eq!(upload.expect_err("no storage").code, Code::Unimplemented);
    }
}
