/**
 * Judges `Gateway` of `@skein/gateway`: the suite runs against a gateway in front of `examples/everything`, to which it speaks a
 * revision of each lifecycle, over HTTP and over stdio, alone and beside a second server.
 *
 * The scenarios of extensions do not run: a gateway declares no extensions.
 */
import * as Client from "@skein/client/Client"
import * as Http from "@skein/client/NodeHttp"
import * as Effect from "effect/Effect"
import { join } from "node:path"
import { runRounds } from "./judgeServer.ts"
import { type Expectations, type Options, type Report, report } from "./report.ts"
import { startEverythingServer, startGatewayServer } from "./serverProcess.ts"

/**
 * The minimum results of a front. With a server of sessions behind, a check that fails ends a scenario before its last
 * check. Without a gateway, all unscored checks of 2025-11-25 are decided; with one, all but one: whether a call can be
 * resumed whose stream the server closes. Only the connection of the gateway is closed and resumed, and the stream of the
 * caller stays open.
 */
const expected = (minChecks: number): Expectations => ({
  "2026-07-28": { scenarios: 37, minChecks },
  "2026-07-28 unscored": { scenarios: 3, minChecks: 32 },
  "2025-11-25": { scenarios: 30, minChecks: 70 },
  "2025-11-25 unscored": { scenarios: 3, minChecks: 13 },
  "2025-06-18": { scenarios: 27, minChecks: 56 },
  "2025-03-26": { scenarios: 1, minChecks: 3 }
})

/** The expected results, by the revision that the gateway speaks to the servers behind it. */
const behind: { readonly [revision: string]: Pick<Options, "differences" | "expected"> } = {
  "2026-07-28": { expected: expected(120) },
  "2025-11-25": {
    expected: expected(119),
    differences: {
      "2026-07-28": {
        "input-required-result-basic-elicitation": {
          InputRequiredResultElicitationIncomplete:
            "the check wants the key \"user_name\". A question of a session has no key, so the gateway makes one"
        },
        "input-required-result-ignore-extra-params": {
          IgnoreUnexpectedParams:
            "the check answers before the question, under the key \"user_name\". A question of a session has no key " +
            "by which the gateway could know that this is its answer, so it is asked"
        }
      }
    }
  }
}

const extensionsOf = (url: string): Promise<ReadonlyArray<string>> =>
  Effect.runPromise(Effect.scoped(
    Effect.map(
      Client.make(Http.transport({ url })),
      ({ capabilities }) => Object.keys(capabilities.extensions ?? {})
    )
  ))

const source = ["--conditions=@skein/source", "--disable-warning=ExperimentalWarning"]
const started = (path: string) => ({
  command: process.execPath,
  args: [...source, join(import.meta.dirname, path)]
})

/** One run of the suite. */
interface Run {
  /** How the gateway reaches the everything server, which keeps its names. */
  readonly title: string
  readonly servers: object
  readonly rounds: Parameters<typeof runRounds>[1]
}

const sessions = ["2025-11-25", "2025-06-18", "2025-03-26"]

/** The runs against a gateway that speaks a revision to the servers behind it. */
const runsOf = (url: string, revision: string): ReadonlyArray<Run> => [
  {
    title: "over HTTP, beside a second server",
    servers: { everything: { url, gateway: { prefix: "" } }, hello: started("../../examples/hello/server.ts") },
    rounds: { coreOnly: true }
  },
  {
    title: "over stdio",
    servers: { everything: { ...started("everythingStdio.ts"), gateway: { prefix: "" } } },
    rounds: {
      coreOnly: true,
      // Log messages of a process do not name their request, and are dropped while several callers have calls in progress.
      oneByOne: true,
      // A process of sessions asks one stateless call at a time, and the next call gets another process. The suite of 2026-07-28
      // leaves calls unanswered, and gives the next one half a second, in which no process starts.
      revisions: revision === "2026-07-28" ? undefined : sessions
    }
  }
]

/** The minimum results of some revisions. */
const expectedOf = (revisions: ReadonlyArray<string>, expected: Expectations = {}): Expectations =>
  Object.fromEntries(
    Object.entries(expected).filter(([name]) => revisions.some((revision) => name.startsWith(revision)))
  )

/** Runs the suite through a gateway, once for each lifecycle and transport of the server behind. `width` clips messages. */
export const judgeGateway = async (width: number | undefined): Promise<Report> => {
  const everything = await startEverythingServer()
  try {
    const reports: Array<Report> = []
    for (const [revision, { differences, expected }] of Object.entries(behind)) {
      for (const { rounds, servers, title } of runsOf(everything.url, revision)) {
        const front = await startGatewayServer({ mcpServers: servers }, revision)
        try {
          console.log(`against ${front.url}, a gateway that speaks ${revision} ${title}`)
          const extensions = await extensionsOf(front.url)
          if (extensions.length > 0) {
            throw new Error(`the gateway declares ${extensions.join(", ")}, whose scenarios this run leaves out`)
          }
          const outcomes = await runRounds(front.url, rounds)
          const ran = rounds?.revisions
          const { passed, text } = report(outcomes, {
            width,
            expected: ran === undefined ? expected : expectedOf(ran, expected),
            differences: ran === undefined ? differences : undefined
          })
          reports.push({ passed, text: `\n${revision} behind the gateway, ${title}\n\n${text}` })
        } finally {
          await front.stop()
        }
      }
    }
    return { passed: reports.every(({ passed }) => passed), text: reports.map(({ text }) => text).join("\n") }
  } finally {
    await everything.stop()
  }
}
