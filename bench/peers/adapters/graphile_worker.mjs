// graphile-worker: local queue and batched completion are its documented performance options.
import { BUSINESS_INSERT, DSN, load, main, progress, versions } from "./protocol.mjs";

const gw = await load("graphile-worker");
const quiet = new gw.Logger(() => (level, msg) => { if (level === "error") console.error(msg); });
let utils;

const handlers = {
  noop: async () => { progress.hit(); },
  latency: async ({ i }) => { progress.probe(i); },
  txn: async ({ i }, helpers) => { progress.hit(); await helpers.query(BUSINESS_INSERT, [i]); },
};

await main({
  meta: {
    peer: "graphile-worker", fast: true, versions: versions("graphile-worker", "pg"), bulk_chunks: [1000, 20000],
    left_sql: "SELECT count(*) FROM graphile_worker._private_jobs",
    backlog_sql: `INSERT INTO graphile_worker._private_jobs (task_id, payload, run_at) SELECT
      (SELECT id FROM graphile_worker._private_tasks WHERE identifier = 'noop'), json_build_object('i', g),
      now() - interval '1 minute' + g * interval '1 microsecond'
      FROM generate_series(1, %(n)s) g`,
    backlog_seed: 1,
    atomic_txn: false, note: "deletes finished jobs",
    confs: {
      throughput: [
        { concurrentJobs: 1, maxPoolSize: 10, default: true },
        { concurrentJobs: 10, maxPoolSize: 12 },
        { concurrentJobs: 24, maxPoolSize: 25, localQueue: { size: 500 }, completeJobBatchDelay: 0 },
        { concurrentJobs: 100, maxPoolSize: 20, localQueue: { size: 1000 }, completeJobBatchDelay: 5 },
      ],
      latency: [{ concurrentJobs: 10, maxPoolSize: 12 },
        { concurrentJobs: 10, maxPoolSize: 12, localQueue: { size: 11 }, completeJobBatchDelay: 0 }],
      txn: [10, 24, 60].map((c) => ({ concurrentJobs: c, maxPoolSize: c + 1, localQueue: { size: 500 }, completeJobBatchDelay: 0 })),
    },
  },
  async setup() {
    const u = await gw.makeWorkerUtils({ connectionString: DSN, logger: quiet });
    await u.migrate();
  },
  async open() { utils = await gw.makeWorkerUtils({ connectionString: DSN, maxPoolSize: 2, logger: quiet }); },
  enqueueOne: (i) => utils.addJob("noop", { i }),
  enqueueMany: (ids) => utils.addJobs(ids.map((i) => ({ identifier: "noop", payload: { i } }))),
  async work(handler, conf) {
    await gw.run({
      noHandleSignals: true, taskList: { noop: handlers[handler] },
      preset: { worker: { connectionString: DSN, logger: quiet, ...conf } },
    });
  },
});
