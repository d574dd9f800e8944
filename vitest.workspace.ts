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
  "packages/cli/test/develop/*.test.ts",
  "packages/console/test/Page.test.ts",
  "packages/gateway/test/Children.test.ts",
  "packages/apps/test/{Chromium,ReadyPages,UiPage}.test.ts",
  "packages/code-mode/test/{Bundle,Hostile}.test.ts",
  "packages/auth/test/stores/{BrowserTabs,FileLocks,PostgresTokenStore,Rotation,SharedSignIn}.test.ts",
  "packages/tasks/test/crash/**/*.test.ts",
  "packages/tasks/test/engine/{Admin,CodeChanges,CutOffSteps,Outages,PacesPostgres,Postgres,SqlTasksPostgres,Stalls,Replays,Takeover}.test.ts",
  "packages/tasks/test/{PgBouncer,hostile/{Limits,Memory,Names},random/RandomHandlers,schedules/Schedules,telemetry/Processes}.test.ts",
  "packages/tasks/test/protocol/{Shutdown,ShutdownQuestions}.test.ts",
  "packages/tasks/test/store/MigrateApart.test.ts",
  "packages/testing/test/Client.{faults,http,stdio}.test.ts",
  "docs/test/{coming,developing,effectApplications,gettingStarted,http,nginx,quickstarts,tasksMachines,tasksOperating}.test.ts",
  "interop/test/{allPairsStdio,authSdkStreams,extApps,extTasksClient,inspector,manySdkClients,officialServersHttp,officialServersPool,officialServersReconnect,officialServersStdio,proxiedChildren,proxiedServers,sdkClientsHttp,sdkClientsReopen,sdkClientsTasksInline,sdkV1ClientTasks,sdkV1ServerTasks,skeinCall}.test.ts",
  "examples/{apps,browser,comparison,everythingClient,npmScripts,signIn,sqlite,tour,tourAuth,tourTasks}.test.ts",
  "packages/sql/test/{PgBouncer,PgClient}.test.ts",
  "scripts/{conventions,conformance/judgeClient,conformance/suite}.test.ts"
]

// The tests of `npm run test:longest` (`--mode longest`), which find fewer faults in a minute. release-check runs them; run
// them, too, when you change their subject. They use programs of other authors (`npm run published`), or what other steps of .ci/run use as
// well: created projects, the site, the soak and the crash run.
const longest = [
  "packages/{create-skein/test/Projects,openapi/test/Published}.test.ts",
  "packages/gateway/test/Processes.test.ts",
  "packages/cli/test/signIn.test.ts",
  "docs/test/{cli,siteBrowser}.test.ts",
  "interop/test/{authBrowser,authPublished,publishedClients,publishedServers,runtimes}.test.ts",
  "scripts/{fuzz/fuzz,soak/soak}.test.ts"
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
      [{ extends: true, test: { name: mode, include: lists[mode], exclude, testTimeout: 240_000 } }] :
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
    // Processes, not threads: the tests of stdio and of leaks inspect the process. Two at a time, for two cores.
    pool: "forks",
    maxWorkers: 2,
    execArgv: ["--expose-gc", "--conditions=@skein/source"],
    // At least ten times what a test takes, because the machine may be busy with something else. A test ends long before.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    teardownTimeout: 60_000,
    expect: { poll: { timeout: 60_000 } }
  }
}))
