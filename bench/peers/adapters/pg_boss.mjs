// pg-boss: batch fetch with burst polling, LISTEN/NOTIFY wake-up, transactional workers for S6.
import { BUSINESS_INSERT, DSN, load, main, progress, versions } from "./protocol.mjs";

const { PgBoss } = await load("pg-boss");
const pg = await load("pg");
let boss, biz;
const connect = async (opts = {}) => {
  const b = new PgBoss({ connectionString: DSN, useListenNotify: true, ...opts });
  b.on("error", (e) => console.error(e.message));
  await b.start();
  return b;
};

const handlers = {
  noop: async (jobs) => { for (const _ of jobs) progress.hit(); },
  latency: async (jobs) => { for (const j of jobs) progress.probe(j.data.i); },
  // One transaction per job: its own BEGIN, business INSERT, complete({ db }), COMMIT (pg-boss then skips these jobs).
  txn: async (jobs) => { await Promise.all(jobs.map(async (j) => {
    const c = await biz.connect();
    try {
      progress.hit();
      await c.query("BEGIN");
      await c.query(BUSINESS_INSERT, [j.data.i]);
      await boss.complete("noop", j.id, null, { db: { executeSql: (text, values) => c.query(text, values) } });
      await c.query("COMMIT");
    } finally { c.release(); }
  })); },
  // One transaction per batch: a failing job rolls back its whole batch.
  txn_batch: async (jobs, db) => { for (const j of jobs) { progress.hit(); await db.executeSql(BUSINESS_INSERT, [j.data.i]); } },
};

await main({
  meta: {
    peer: "pg-boss", fast: true, versions: versions("pg-boss", "pg"), bulk_chunks: [1000, 20000],
    left_sql: "SELECT count(*) FROM pgboss.job WHERE name = 'noop' AND state < 'completed'",
    backlog_sql: `INSERT INTO pgboss.job (name, data, policy, created_on, start_after) SELECT name, data, policy, t, t FROM pgboss.job,
      LATERAL (SELECT now() - interval '1 minute' + g * interval '1 microsecond' AS t FROM generate_series(1, %(n)s) g) s
      WHERE name = 'noop'`,
    backlog_seed: 1,
    atomic_txn: true, note: "keeps completed jobs (7 days by default)",
    confs: {
      throughput: [
        { batchSize: 1, localConcurrency: 1, pollingIntervalSeconds: 2, default: true },
        { batchSize: 100, localConcurrency: 1, burstWhenBatchFull: true },
        { batchSize: 500, localConcurrency: 2, burstWhenBatchFull: true },
        { batchSize: 1000, localConcurrency: 4, burstWhenBatchFull: true },
      ],
      latency: [{ batchSize: 10, localConcurrency: 1, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 }],
      txn: [4, 10].map((biz_pool) => ({ batchSize: 100, localConcurrency: 2, burstWhenBatchFull: true, biz_pool })),
      txn_batch: [{ batchSize: 100, localConcurrency: 2, burstWhenBatchFull: true, transactional: true }],
    },
  },
  async setup() { const b = await connect(); await b.createQueue("noop", { notify: true }); },
  async open() { boss = await connect({ max: 1, supervise: false, schedule: false, useListenNotify: false }); },
  enqueueOne: (i) => boss.send("noop", { i }),
  enqueueMany: (ids) => boss.insert("noop", ids.map((i) => ({ data: { i } }))),
  async work(handler, conf) {
    const { biz_pool, ...work } = conf;
    boss = await connect({ max: conf.localConcurrency + 4 });
    if (biz_pool) biz = new pg.Pool({ connectionString: DSN, max: biz_pool });
    await boss.work("noop", { pollingIntervalSeconds: 0.5, ...work }, handlers[handler]);
  },
});
