// What the objects of a deployment have on the disk, read and changed without the deployment: nothing it does on its own
// account is set off by looking.

import fs from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";

/** The databases of the shards in a deployment's state folder. The runtime's own, which keeps their alarms, is not one. */
function shardFiles(state) {
  const folder = path.join(state, "objects/conclave-Shard");
  return fs.readdirSync(folder)
    .filter((name) => name.endsWith(".sqlite") && name !== "metadata.sqlite")
    .map((name) => path.join(folder, name));
}

function withDatabase(file, readOnly, use) {
  const database = new DatabaseSync(file, { readOnly });
  try {
    return use(database);
  } finally {
    database.close();
  }
}

/** SQLite's extended code for a database that must first be rolled back, by somebody who may write. */
const READONLY_ROLLBACK = 776;

/** Of the database as it was committed: what a kill left half done is rolled back, as whoever opens it next would. */
function readDatabase(file, use) {
  try {
    return withDatabase(file, true, use);
  } catch (error) {
    if (error.errcode !== READONLY_ROLLBACK) throw error;
    return withDatabase(file, false, use);
  }
}

/** Whether a shard got as far as making its tables before its runtime was killed. It makes them all at once. */
function hasTables(database) {
  return database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'envelope'").get() !== undefined;
}

/** The single number that a statement answers, of all shards together. */
export function countOnDisk(state, statement) {
  const count = (database) => Number(Object.values(database.prepare(statement).get())[0]);
  const counts = shardFiles(state).map((file) => readDatabase(file, (database) => (hasTables(database) ? count(database) : 0)));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Changes the tables of every shard. The deployment must not run. */
export function changeOnDisk(state, statements) {
  for (const file of shardFiles(state)) withDatabase(file, false, (database) => database.exec(statements));
}
