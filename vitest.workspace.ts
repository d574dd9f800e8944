import { defineConfig } from "vitest/config"

// Tests run from source without a build: the exports of the workspaces have this condition. "import" is left out on
// purpose. Imports have it anyway, and listed here it would apply to the `require` calls of other packages as well.
const conditions = ["@skein/source", "node", "module", "default"]

// The tests of `npm run test:long` (`--mode long`), which take minutes together: they start, stop and kill processes,
// databases, browsers and other programs, or repeat an action thousands of times. `npm test` excludes them and so takes
// less than five minutes on two cores.
const long = [
  "packages/client/test/{attacks/{Chunks,Flood,Processes,Schemas,Storms,Wire},browser/Chromium,connection/ManyReconnects,tasks/{ManyTasks,RestartProcess,SkeinServer}}.test.ts",
  "packages/server/test/{input/RandomHandlers,http/process,http/attacks/{replays,totals,unread},http/session/Memory}.test.ts",
  "packages/server/test/{Conformance,TypeErrors,http/processOptions,stdio/LogFormat}.test.ts",
  "packages/{client,server}/test/stdio/Process.test.ts",
  "packages/server/test/state/PostgresStateStore.test.ts",
  "packages/protocol/test/{hostile/*,oracle/{AcrossRevisions,Generators,Read,Sensitivity,Write}}.test.ts",
  "packages/auth/test/oauth/Browser.test.ts",
  "packages/auth/test/protect/PostgresReplayStore.test.ts",
  "packages/auth/test/hostile/Documents.test.ts",
  "packages/auth/test/proxy/{Chromium,Postgres,Tasks}.test.ts",
  "packages/auth/test/signin/{chromium,webProcesses}.test.ts",
  "packages/cli/test/generateClient.test.ts",
  "packages/cli/test/signIn.test.ts",
  "packages/cli/test/develop/*.test.ts",
  "packages/console/test/Page.test.ts",
  "packages/gateway/test/{Children,Processes}.test.ts",
  "packages/apps/test/{Chromium,ReadyPages,UiPage}.test.ts",
  "packages/code-mode/test/{Bundle,Hostile}.test.ts",
  "packages/auth/test/stores/{BrowserTabs,FileLocks,PostgresTokenStore,Rotation,SharedSignIn}.test.ts",
  "packages/tasks/test/crash/**/*.test.ts",
  "packages/tasks/test/engine/{Admin,CodeChanges,CutOffSteps,Outages,PacesPostgres,Postgres,SqlTasksPostgres,Stalls,Replays,Takeover}.test.ts",
  "packages/tasks/test/{PgBouncer,hostile/{Limits,Memory,Names},random/RandomHandlers,schedules/Schedules,telemetry/Processes}.test.ts",
  "packages/tasks/test/protocol/{Shutdown,ShutdownQuestions}.test.ts",
  "packages/tasks/test/store/MigrateApart.test.ts",
  "packages/testing/test/Client.{faults,http,stdio}.test.ts",
  "packages/{create-skein/test/Projects,openapi/test/Published}.test.ts",
  "docs/test/{cli,coming,developing,effectApplications,gettingStarted,http,nginx,quickstarts,siteBrowser,tasksMachines,tasksOperating}.test.ts",
  "interop/test/{allPairsStdio,authBrowser,authPublished,authSdkStreams,extApps,extTasksClient,inspector,manySdkClients,officialServersHttp,officialServersPool,officialServersReconnect,officialServersStdio,proxiedChildren,proxiedServers,publishedClients,publishedServers,runtimes,sdkClientsHttp,sdkClientsReopen,sdkClientsTasksInline,sdkV1ClientTasks,sdkV1ServerTasks,skeinCall}.test.ts",
  "examples/{apps,browser,comparison,everythingClient,npmScripts,signIn,sqlite,tour,tourAuth,tourTasks}.test.ts",
  "packages/sql/test/{PgBouncer,PgClient}.test.ts",
  "scripts/{conventions,conformance/judgeClient,conformance/suite,fuzz/fuzz,soak/soak}.test.ts"
]

// Test files with a process of their own: they measure their process, change its environment, its folder or its global
// objects, or import programs whose state others change.
const alone = [
  "docs/programs/quickstart/test/temperature.test.ts",
  "docs/test/{authoring,providers,proxy}.test.ts",
  "packages/client/test/AsyncClient.test.ts",
  "packages/client/test/connection/Handshake.test.ts",
  "packages/client/test/attacks/{Cached,Names}.test.ts",
  "packages/client/test/http/{NodeHttp,NodeClient}.test.ts",
  "packages/client/test/legacyTasks/Lifetime.test.ts",
  "packages/runtime/test/{Leaks,Ndjson,NodeStreams,Peer,Timeout}.test.ts",
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

export default defineConfig(({ mode }) => ({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: ["@skein/source"] } },
  test: {
    projects: mode === "long" ?
      [{ extends: true, test: { name: "long", include: long, exclude, testTimeout: 120_000 } }] :
      [
        { extends: true, test: { name: "alone", include: alone, exclude: [...exclude, ...long] } },
        // The other files share processes, and so load each module once. Imports took a quarter of their time.
        {
          extends: true,
          test: { name: "together", isolate: false, include: all, exclude: [...exclude, ...long, ...alone] }
        }
      ],
    globalSetup: ["./scripts/setup.ts"],
    reporters: ["default", "./scripts/reporter.ts"],
    // Processes, not threads: the tests of stdio and of leaks inspect the process. Two at a time, for two cores.
    pool: "forks",
    maxWorkers: 2,
    execArgv: ["--expose-gc", "--conditions=@skein/source"],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    teardownTimeout: 10_000
  }
}))
