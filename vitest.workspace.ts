import { defineConfig } from "vitest/config"

// Tests run from source: the workspaces' exports name it under this condition, so that no build comes before a test.
// Not "import", which is there for imports anyway, and would hold for the `require` of packages outside as well.
const conditions = ["@skein/source", "node", "module", "default"]

// What takes minutes all in all, for it starts, stops and kills processes, databases, browsers, and programs of others, or does
// the same thing thousands of times: `npm run test:long`, which is `--mode long`. `npm test` leaves it out, so that it stays below
// five minutes on two cores.
const long = [
  "packages/client/test/{attacks/Processes,browser/Chromium,keeping/Many,tasks/Many}.test.ts",
  "packages/server/test/{asking/Programs,http/process}.test.ts",
  "packages/{client,server}/test/stdio/Process.test.ts",
  "packages/tasks/test/crash/**/*.test.ts",
  "packages/tasks/test/engine/{CutOffSteps,Outages,Postgres,Takeover}.test.ts",
  "packages/tasks/test/{protocol/Shutdown,hostile/Names}.test.ts",
  "docs/test/tasksMachines.test.ts",
  "examples/{everything-client,sqlite,tour.tasks}.test.ts",
  "interop/test/{command,crowd,inspector,stdio,tasksExt,theirs,theirsStdio}.test.ts",
  "scripts/soak/soak.test.ts"
]

// What counts or measures what its process holds, or imports programs that keep something, has a process of its own.
const alone = [
  "docs/**/*.test.ts",
  "packages/client/test/Handshake.test.ts",
  "packages/client/test/attacks/{Cached,Flood,Names,Wire}.test.ts",
  "packages/client/test/http/{nodeHttp,nodeWire}.test.ts",
  "packages/client/test/receiver/Lifetime.test.ts",
  "packages/runtime/test/{Leaks,Ndjson,NodeStreams,Peer,Timeout}.test.ts",
  "packages/server/test/http/{attacks/bodies,attacks/replays,node,session/Memory}.test.ts",
  "packages/tasks/test/hostile/Memory.test.ts"
]

const all = [
  "packages/*/test/**/*.test.ts",
  "interop/**/*.test.ts",
  "examples/**/*.test.ts",
  "scripts/**/*.test.ts"
]

const exclude = ["**/node_modules/**"]

export default defineConfig(({ mode }) => ({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: ["@skein/source"] } },
  test: {
    projects: mode === "long" ?
      [{ extends: true, test: { name: "long", include: long, exclude } }] :
      [
        { extends: true, test: { name: "alone", include: alone, exclude: [...exclude, ...long] } },
        // The others share processes, and so what they import: a quarter of their time went into that.
        {
          extends: true,
          test: { name: "together", isolate: false, include: all, exclude: [...exclude, ...long, ...alone] }
        }
      ],
    globalSetup: ["./scripts/setup.ts"],
    reporters: ["default", "./scripts/reporter.ts"],
    // Processes, not threads: the tests of stdio and of leaks look at the process. Two at a time suit two cores.
    pool: "forks",
    maxWorkers: 2,
    execArgv: ["--expose-gc", "--conditions=@skein/source"],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    teardownTimeout: 10_000
  }
}))
