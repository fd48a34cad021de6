using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "floor", worker = .floor),
    (name = "state", disk = (writable = true)),
  ],
  sockets = [(name = "http", http = (), service = "floor")],
);

const floor :Workerd.Worker = (
  modules = [(name = "floor.js", esModule = embed "floor.js")],
  compatibilityDate = "2026-11-17",
  durableObjectStorage = (localDisk = "state"),
  durableObjectNamespaces = [(className = "Floor", uniqueKey = "floor", enableSql = true)],
  bindings = [(name = "FLOOR", durableObjectNamespace = "Floor")],
);
