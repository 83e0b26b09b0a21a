// River: pgx v5, COPY for bulk, LISTEN/NOTIFY wake-up, JobCompleteTx for S6. The protocol is in ../../../README.md.
// Its batch completer is always on and has no options; what a user can set is workers, cooldown, pool and job timeout.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"golang.org/x/sys/unix"
)

type obj = map[string]any

// Zero values mean River's own defaults: cooldown 100 ms, poll 1 s, job timeout 1 min; pgx: 4 connections.
type Conf struct {
	Workers  int  `json:"workers"`
	Cooldown int  `json:"cooldown_ms"`
	Poll     int  `json:"poll_ms"`
	Pool     int  `json:"pool"`
	Clients  int  `json:"clients"`
	Untimed  bool `json:"untimed"`
}

var meta = obj{
	"peer": "river", "fast": true, "bulk_chunks": []int{1000, 20000}, "atomic_txn": true,
	"note":     "keeps completed jobs (24 hours by default)",
	"left_sql": "SELECT count(*) FROM river_job WHERE finalized_at IS NULL",
	"backlog_sql": "INSERT INTO river_job (kind, args, max_attempts, scheduled_at) SELECT 'noop', jsonb_build_object('i', g), 25, " +
		"now() - interval '1 minute' + g * interval '1 microsecond' FROM generate_series(1, %(n)s) g",
	"confs": obj{
		"throughput": []obj{
			{"workers": 100, "default": true},
			{"workers": 100, "cooldown_ms": 1, "pool": 10}, {"workers": 500, "cooldown_ms": 1, "pool": 10},
			{"workers": 1000, "cooldown_ms": 1, "pool": 10}, {"workers": 2000, "cooldown_ms": 1, "pool": 10},
			{"workers": 5000, "cooldown_ms": 1, "pool": 10}, {"workers": 10000, "cooldown_ms": 1, "pool": 10},
			{"workers": 2000, "cooldown_ms": 1, "pool": 10, "untimed": true},
			{"workers": 1000, "cooldown_ms": 1, "pool": 10, "clients": 2}, {"workers": 2000, "cooldown_ms": 1, "pool": 10, "clients": 2},
		},
		"latency": []obj{{"workers": 100, "cooldown_ms": 1, "poll_ms": 100, "pool": 10}, {"workers": 100, "cooldown_ms": 1, "pool": 10}},
		"txn": []obj{{"workers": 10, "cooldown_ms": 1, "pool": 15}, {"workers": 24, "cooldown_ms": 1, "pool": 30},
			{"workers": 500, "cooldown_ms": 1, "pool": 15}, {"workers": 500, "cooldown_ms": 1, "pool": 30}},
	},
}

func versions() obj {
	out := obj{"go": strings.TrimPrefix(runtime.Version(), "go")}
	info, _ := debug.ReadBuildInfo()
	for _, d := range info.Deps {
		if name, ok := map[string]string{"github.com/riverqueue/river": "river", "github.com/jackc/pgx/v5": "pgx"}[d.Path]; ok {
			out[name] = strings.TrimPrefix(d.Version, "v")
		}
	}
	return out
}

func now() float64 { // CLOCK_MONOTONIC, same as python
	var ts unix.Timespec
	must(unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts))
	return float64(ts.Sec) + float64(ts.Nsec)/1e9
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var out sync.Mutex

func emit(format string, words ...any) {
	out.Lock()
	fmt.Printf(format+"\n", words...)
	out.Unlock()
}

var count atomic.Int64

func hit() {
	if count.Add(1) == 1 {
		emit("F %.9f", now())
	}
}

func connect(ctx context.Context, size int) *pgxpool.Pool {
	cfg, err := pgxpool.ParseConfig(os.Getenv("BENCH_DSN"))
	must(err)
	if size > 0 {
		cfg.MaxConns = int32(size)
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	must(err)
	return pool
}

type Args struct {
	I int `json:"i"`
}

func (Args) Kind() string { return "noop" }

type Worker struct {
	river.WorkerDefaults[Args]
	work func(context.Context, *river.Job[Args]) error
}

func (w *Worker) Work(ctx context.Context, job *river.Job[Args]) error { return w.work(ctx, job) }

func handler(name string, pool *pgxpool.Pool) func(context.Context, *river.Job[Args]) error {
	switch name {
	case "latency":
		return func(_ context.Context, job *river.Job[Args]) error {
			emit("L %d %.9f", job.Args.I, now())
			count.Add(1)
			return nil
		}
	case "txn":
		return func(ctx context.Context, job *river.Job[Args]) error {
			hit()
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, "INSERT INTO bench_biz (job) VALUES ($1)", job.Args.I); err != nil {
					return err
				}
				_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
				return err
			})
		}
	}
	return func(context.Context, *river.Job[Args]) error { hit(); return nil }
}

func work(ctx context.Context, name string, conf Conf) {
	emit("READY")
	bufio.NewReader(os.Stdin).ReadString('\n') // wait for GO
	go func() {
		for seen := int64(0); ; time.Sleep(20 * time.Millisecond) {
			if n := count.Load(); n != seen {
				seen = n
				emit("H %d %.9f", n, now())
			}
		}
	}()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	pool := connect(context.Background(), conf.Pool)
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	var clients []*river.Client[pgx.Tx]
	for i := range max(conf.Clients, 1) {
		workers := river.NewWorkers()
		river.AddWorker(workers, &Worker{work: handler(name, pool)})
		cfg := &river.Config{
			ID: fmt.Sprintf("bench-%d-%d", os.Getpid(), i), Workers: workers, SoftStopTimeout: 2 * time.Second,
			Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: conf.Workers}},
			FetchCooldown: ms(conf.Cooldown), FetchPollInterval: ms(conf.Poll),
			Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		}
		if conf.Untimed {
			cfg.JobTimeout = -1
		}
		client, err := river.NewClient(riverpgxv5.New(pool), cfg)
		must(err)
		must(client.Start(ctx))
		clients = append(clients, client)
	}
	for _, c := range clients {
		<-c.Stopped()
	}
}

func main() {
	ctx, arg := context.Background(), os.Args[1:]
	num := func(i int) float64 { n, err := strconv.ParseFloat(arg[i], 64); must(err); return n }
	if arg[0] == "meta" {
		meta["versions"] = versions()
		line, err := json.Marshal(meta)
		must(err)
		emit("%s", line)
		return
	}
	if arg[0] == "work" {
		var conf Conf
		must(json.Unmarshal([]byte(arg[2]), &conf))
		work(ctx, arg[1], conf)
		return
	}
	pool := connect(ctx, 1)
	if arg[0] == "setup" {
		m, err := rivermigrate.New(riverpgxv5.New(pool), nil)
		must(err)
		_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
		must(err)
		return
	}
	// An inserting client sends at most one NOTIFY per queue and FetchCooldown: at the default 100 ms, S3 would measure that.
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{FetchCooldown: time.Millisecond})
	must(err)
	one := func(i int) { _, err := client.Insert(ctx, Args{i}, nil); must(err) }
	must(pool.Ping(ctx))
	switch n := int(num(1)); arg[0] {
	case "enqueue":
		chunk, t0 := int(num(2)), now()
		for lo := 0; lo < n; lo += chunk {
			if chunk == 1 {
				one(lo)
				continue
			}
			jobs := make([]river.InsertManyParams, min(chunk, n-lo))
			for k := range jobs {
				jobs[k].Args = Args{lo + k}
			}
			_, err := client.InsertManyFast(ctx, jobs)
			must(err)
		}
		emit(`{"seconds": %.6f}`, now()-t0)
	case "produce":
		one(-1)
		time.Sleep(300 * time.Millisecond)
		t, lines := now(), make([]string, n)
		for i := range n {
			t += num(2)
			time.Sleep(time.Duration((t - now()) * 1e9))
			t0 := now()
			one(i)
			lines[i] = fmt.Sprintf("P %d %.9f %.9f", i, t0, now())
		}
		emit("%s", strings.Join(lines, "\n"))
	}
}
