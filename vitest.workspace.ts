import { defineConfig } from "vitest/config"

// Tests run from source without a build: the exports of the workspaces have this condition. "import" is left out on
// purpose. Imports have it anyway, and listed here it would apply to the `require` calls of other packages as well.
const conditions = ["@skein/source", "node", "module", "default"]

// Each test is in one of three tiers. `npm test` excludes the tests of both lists, and takes less than four minutes on two cores.
// A file that takes longer than ten seconds there belongs into a list.
//
// The tests of `npm run test:long` (`--mode long`), which .ci/run runs: they start, stop and kill processes, databases, browsers
// and other programs, or repeat an action thousands of times. Together they take less than ten minutes.
const long = [
  "packages/client/test/{attacks/{Flood,Processes,Schemas,Storms,Wire},browser/Chromium,stdio/Process,tasks/{ManyTasks,RestartProcess,SkeinServer,Wire}}.test.ts",
  "packages/server/test/{Conformance,TypeErrors,input/RandomHandlers,state/PostgresStateStore,stdio/{LogFormat,Process}}.test.ts",
  "packages/server/test/http/{fleet/Interleavings,process,processOptions,session/Memory,workers}.test.ts",
  "packages/skein/test/{mixing/mixing,server/{processLogs,workers}}.test.ts",
  "packages/protocol/test/{hostile/Cases,oracle/{AcrossRevisions,Generators,Read,Sensitivity,Write}}.test.ts",
  "packages/auth/test/{hostile/Documents,oauth/Browser,protect/PostgresReplayStore,proxy/Postgres,signin/{chromium,webProcesses}}.test.ts",
  "packages/auth/test/stores/{BrowserTabs,FileLocks,PostgresTokenStore}.test.ts",
  "packages/cli/test/develop/{build,dev,fleet,gateway,restart,run}.test.ts",
  "packages/{apps/test/{Chromium,ReadyPages,UiPage},code-mode/test/{Bundle,Hostile},console/test/{Page,workers/Workers}}.test.ts",
  "packages/tasks/test/{PgBouncer,children/TenThousand,workers/Workers,crash/FailedTask,hostile/{Limits,Memory,Names},random/RandomHandlers}.test.ts",
  "packages/tasks/test/{protocol/Shutdown,schedules/Schedules,store/{MigrateApart,Output},telemetry/Processes,testing/Replay}.test.ts",
  "packages/tasks/test/engine/{Admin,Clocks,CodeChanges,CutOffSteps,Exports,Outages,PacesPostgres,Postgres,Sections}.test.ts",
  "packages/tasks/test/engine/{SqlTasksPostgres,Replays,RunningSteps,Takeover}.test.ts",
  "packages/skein/test/{server/postgresState,tasks/postgresTasks}.test.ts",
  "packages/fleet/test/{Postgres*,Redis{EventStore,Principals},postgres/{Outages,PgBouncer,Principals,Processes,Records}}.test.ts",
  "packages/{sql/test/{PgBouncer,PgClient},testing/test/Client.{faults,stdio}}.test.ts",
  "docs/test/{async/coming,effectApplications,http,tasksOperating}.test.ts",
  "interop/test/{allPairsStdio,authSdkStreams,extTasksClient,fleetClients,fleetPostgres,fleetRedis,fleetSessions,proxiedChildren,proxiedServers}.test.ts",
  "interop/test/{officialServersHttp,officialServersPool,officialServersReconnect,officialServersStdio}.test.ts",
  "interop/test/{sdkClientsHttp,sdkClientsReopen,sdkClientsTasksInline,sdkV1ClientTasks,sdkV1ServerTasks,workers}.test.ts",
  "examples/{apps,everythingClient,signIn,sqlite,tourAuth,tourTasks}.test.ts",
  "scripts/crash/fleet/replacement.test.ts"
]

// The tests of `npm run test:longest` (`--mode longest`), which find fewer faults in a minute. release-check runs them; run
// them, too, when you change their subject. They repeat accidents at random for minutes, use programs of other authors (`npm run
// published`), repeat for Redis or a reverse proxy what is tested without, or test again what other steps of .ci/run use: the
// linter, created projects, the site, conformance, the soak and crash runs.
const longest = [
  "packages/client/test/{attacks/Chunks,connection/ManyReconnects}.test.ts",
  "packages/server/test/http/{attacks/{replays,totals,unread},workersOperated}.test.ts",
  "packages/protocol/test/hostile/Search.test.ts",
  "packages/auth/test/{proxy/{Chromium,Tasks},stores/{Rotation,SharedSignIn}}.test.ts",
  "packages/cli/test/{develop/{conformance,folder,modules,publish,skeinPackage},generateClient,signIn}.test.ts",
  "packages/{create-skein/test/Projects,openapi/test/Published,skills/test/Published,testing/test/Client.http}.test.ts",
  "packages/fleet/test/{RedisFleet,RedisHttp,postgres/Http}.test.ts",
  "packages/gateway/test/{Children,Processes}.test.ts",
  "packages/tasks/test/{crash/{Continued,Deadlines,Poison,Schedules,Sqlite},engine/{EncryptedRaces,Stalls,UnreachedSteps},protocol/ShutdownQuestions}.test.ts",
  "docs/test/{async/{developing,quickstarts},cli,haproxy,nginx,siteBrowser,tasksMachines}.test.ts",
  "interop/test/{authBrowser,authPublished,extApps,fleetKilled,fleetPrograms,inspector,manySdkClients,publishedClients,publishedServers,runtimes,skeinCall}.test.ts",
  "examples/{browser,comparison,fleet,npmScripts,tour}.test.ts",
  "scripts/{conformance/{judgeClient,suite},conventions,crash/fleet/walk,fuzz/fuzz,soak/soak}.test.ts"
]

// Test files with a process of their own: they measure their process, change its environment, its folder or its global
// objects, or import programs whose state others change.
export const alone = [
  "docs/programs/quickstart/test/temperature.test.ts",
  "docs/test/{authoring,providers,proxy}.test.ts",
  "packages/client/test/AsyncClient.test.ts",
  "packages/client/test/connection/Handshake.test.ts",
  "packages/client/test/attacks/{Cached,Names}.test.ts",
  "packages/client/test/http/{NodeHttp,NodeClient}.test.ts",
  "packages/client/test/legacyTasks/Lifetime.test.ts",
  "packages/runtime/test/{Leaks,Ndjson,NodeStreams,Peer,Timeout}.test.ts",
  "packages/skein/test/testing/time.test.ts",
  "packages/server/test/http/{attacks/bodies,node,wire/*}.test.ts"
]

const all = [
  "packages/*/test/**/*.test.ts",
  "docs/**/*.test.ts",
  "interop/**/*.test.ts",
  "examples/**/*.test.ts",
  "scripts/**/*.test.ts"
]

const exclude = ["**/node_modules/**"]

export const lists: Readonly<Record<string, Array<string>>> = { long, longest }

export default defineConfig(({ mode }) => ({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: ["@skein/source"] } },
  test: {
    projects: mode in lists ?
      // They wait for other programs most of the time.
      [{ extends: true, test: { name: mode, include: lists[mode], exclude, maxWorkers: 4, testTimeout: 240_000 } }] :
      [
        { extends: true, test: { name: "alone", include: alone, exclude: [...exclude, ...long, ...longest] } },
        // The other files share processes, and so load each module once. Imports took a quarter of their time.
        {
          extends: true,
          test: { name: "together", isolate: false, include: all, exclude: [...exclude, ...long, ...longest, ...alone] }
        }
      ],
    globalSetup: ["./scripts/setup.ts"],
    reporters: ["default", "./scripts/reporter.ts"],
    // Processes, not threads: the tests of stdio and of leaks inspect the process. On two cores one of three waits for something.
    pool: "forks",
    maxWorkers: 3,
    // As a deployed server: clients do not see the messages of unexpected errors. A test of the development provides it.
    env: { SKEIN_DEVELOPMENT: "false" },
    execArgv: ["--expose-gc", "--conditions=@skein/source"],
    // At least ten times what a test takes, because the machine may be busy with something else. A test ends long before.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    teardownTimeout: 60_000,
    expect: { poll: { timeout: 60_000 } }
  }
}))
