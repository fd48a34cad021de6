//! Opening an endpoint: the store, the Registry, the agent, the engine, and then everything that runs.

use std::rc::Rc;

use conclave_conversation::binding::Attendance;
use conclave_conversation::engine::{Local, OpenError};
use conclave_harness::AgentName;

use super::attendance::ATTENDANCE;
use super::driver::{Driver, Message, watch_store};
use super::handle::{Handle, Shared};
use super::identity::Identity;
use super::invitations::run_invitations;
use super::pending::Pending;
use super::progress::ProgressTracker;
use super::registry::Registry;
use super::timers::Timers;
use super::verification::verify;
use crate::failure::{Failure, Operation};
use crate::observer::{Observer, Phase};
use crate::platform::{
    queue,
    scope::{Scope, spawn},
};
use crate::store::{IndexedDbStore, StoreFailure, StoreFault};
use crate::transport::{Deployment, Transport, run_feed};

/// How to open an endpoint.
pub(crate) struct OpenOptions {
    /// The connection to it.
    pub(crate) transport: Transport,
    /// The agent's name.
    pub(crate) name: String,
    /// The thumbprint URI of the Registry's key, where it is known.
    pub(crate) registry_key: Option<String>,
    /// For a deployment that guards registration.
    pub(crate) admission_token: Option<String>,
    /// The database's name.
    pub(crate) storage_name: String,
}

/// Opens the store, the agent and the engine, and starts.
pub(crate) async fn open(options: OpenOptions, observer: Observer) -> Result<Handle, Failure> {
    let name: AgentName = options.name.parse().map_err(|error| {
        Failure::new(
            Operation::Open,
            "invalid-options",
            format!("the name \"{}\": {error}", options.name),
        )
    })?;
    let deployment = Deployment::new(options.transport);
    let (store, taken) = IndexedDbStore::open(&options.storage_name, &observer).await?;
    let store = Rc::new(store);
    let registry = Registry::open(
        deployment.clone(),
        Rc::clone(&store),
        options.registry_key.as_deref(),
    )
    .await?;
    let registry = Rc::new(registry);
    let identity = Identity::open(
        &deployment,
        &store,
        &registry,
        &name,
        options.admission_token,
        &observer,
    )
    .await?;

    let rows = store.load().await?;
    let local = Local::new(identity.card.clone(), identity.key, *registry.signer());
    let (engine, step) = verify(local, &rows, &observer)
        .await
        .map_err(|error| engine_failure(&error, store.unverified_since()))?;
    let tracker = ProgressTracker::open(identity.card.agent_id(), &engine);
    drop(rows);

    let (inbox, messages) = queue::queue();
    let (feed, feed_commands) = queue::queue();
    let (invitations, invitation_envelopes) = queue::queue();
    let open_posts = tracker.pictures(|id| {
        let mut held = engine.conversations().map(|view| view.membership);
        held.find(|membership| membership.conversation_id() == id)
    });
    let shared = Rc::new(Shared::new(tracker, open_posts));
    let attendance = store.local(ATTENDANCE).await?.unwrap_or_default();
    let mut driver = Driver {
        engine,
        store: Rc::clone(&store),
        deployment: deployment.clone(),
        shared: Rc::clone(&shared),
        observer: Rc::new(observer),
        scope: Scope::default(),
        inbox: inbox.clone(),
        feed: feed.clone(),
        invitations,
        local_id: identity.card.agent_id(),
        local_key: identity.card.public_key(),
        pending: Pending::default(),
        attendance: Attendance::decode(&attendance),
        timers: Timers::default(),
        alarm: None,
    };
    driver.carry_out(step).await?;
    driver.store.mark_started().await?;
    driver.observer.tell_opening(Phase::Connecting);

    let tell = {
        let inbox = inbox.clone();
        move |message| {
            inbox.send(message);
        }
    };
    driver.scope.spawn(Box::pin(watch_store(taken, inbox.clone())));
    let tell_feed = tell.clone();
    let tell_feed = move |event| tell_feed(Message::Feed(event));
    driver
        .scope
        .spawn(Box::pin(run_feed(deployment, feed_commands, tell_feed)));
    let tell_invitation = tell.clone();
    let tell_invitation = move |looked| tell_invitation(Message::Invitation(looked));
    let invitations = run_invitations(
        Rc::clone(&registry),
        identity.card.public_key(),
        feed,
        invitation_envelopes,
        tell_invitation,
    );
    driver.scope.spawn(Box::pin(invitations));
    if !identity.is_new {
        let registry = Rc::clone(&registry);
        driver.scope.spawn(Box::pin(async move {
            if let Err(failure) = registry.check_signer().await {
                tell(Message::Ended(failure));
            }
        }));
    }
    spawn(Box::pin(driver.run(messages)));
    Ok(Handle::new(identity.card, registry, store, shared, inbox))
}

/// `migrated_from` is the layout the store was brought here from and never started since.
fn engine_failure(error: &OpenError, migrated_from: Option<u32>) -> Failure {
    let failure = match error {
        OpenError::Identity(_) => Failure::new(Operation::Open, "identity", error.to_string()),
        OpenError::Corrupt(_) | OpenError::OutboxTooOld { .. } => StoreFailure::from(error).into(),
    };
    match migrated_from {
        None => failure,
        Some(from) => Failure::from(StoreFailure::new(
            StoreFault::MigrationFailed,
            format!(
                "the store does not verify after its migration from layout {from}. `Endpoint.restore` puts it back as it \
                 was, for the release that wrote it"
            ),
        ))
        .because(failure),
    }
}
