/**
 * Judges `Proxy` of `@skein/gateway`: the suite runs against a server whose definitions are all those of
 * `examples/everything`, to which the proxy speaks a revision of each lifecycle in turn.
 *
 * The scenarios of extensions do not run: a proxy declares no extensions.
 */
import * as Client from "@skein/client/Client"
import * as Http from "@skein/client/NodeHttp"
import * as Effect from "effect/Effect"
import { runRounds } from "./judgeServer.ts"
import { type Expectations, type Options, type Report, report } from "./report.ts"
import { startEverythingServer, startProxyServer } from "./serverProcess.ts"

/**
 * The minimum results of a front. With a server of sessions behind, a check that fails ends a scenario before its last
 * check. Without a proxy, all unscored checks of 2025-11-25 are decided; with one, all but one: whether a call can be
 * resumed whose stream the server closes. Only the connection of the proxy is closed and resumed, and the stream of the
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

/** The expected results, by the revision that the proxy speaks to the server behind it. */
const behind: { readonly [revision: string]: Pick<Options, "differences" | "expected"> } = {
  "2026-07-28": { expected: expected(120) },
  "2025-11-25": {
    expected: expected(119),
    differences: {
      "2026-07-28": {
        "input-required-result-basic-elicitation": {
          InputRequiredResultElicitationIncomplete:
            "the check wants the key \"user_name\". A question of a session has no key, so the proxy makes one"
        },
        "input-required-result-ignore-extra-params": {
          IgnoreUnexpectedParams:
            "the check answers before the question, under the key \"user_name\". A question of a session has no key " +
            "by which the proxy could know that this is its answer, so it is asked"
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

/** Runs the suite through a proxy, once for each lifecycle of the server behind. `width` clips messages. */
export const judgeProxy = async (width: number | undefined): Promise<Report> => {
  const everything = await startEverythingServer()
  try {
    const reports: Array<Report> = []
    for (const [revision, options] of Object.entries(behind)) {
      const front = await startProxyServer(everything.url, revision)
      try {
        console.log(`against ${front.url}, a proxy that speaks ${revision} to ${everything.url}`)
        const extensions = await extensionsOf(front.url)
        if (extensions.length > 0) {
          throw new Error(`the proxy declares ${extensions.join(", ")}, whose scenarios this run leaves out`)
        }
        const { passed, text } = report(await runRounds(front.url, true), { ...options, width })
        reports.push({ passed, text: `\n${revision} behind the proxy\n\n${text}` })
      } finally {
        await front.stop()
      }
    }
    return { passed: reports.every(({ passed }) => passed), text: reports.map(({ text }) => text).join("\n") }
  } finally {
    await everything.stop()
  }
}
