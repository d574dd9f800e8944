/**
 * The server's leg: both requirement sets and the whole suite at the older revisions, against `examples/everything` on a free port
 * or against the server at a URL.
 */
import * as Everything from "./everything.ts"
import type { Selection } from "./referee.ts"
import { type Outcome, type Report, report } from "./report.ts"
import * as Suite from "./suite.ts"

/**
 * What runs at the same time. The scenarios of 2026-07-28 change the server's lists and watch the clock, half a second at a time,
 * so that they run alone.
 */
const rounds: ReadonlyArray<ReadonlyArray<Selection>> = [
  [{ revision: "2025-11-25" }, { revision: "2025-06-18", whole: true }, { revision: "2025-03-26", whole: true }],
  [{ revision: "2026-07-28" }]
]

/** How many checks there are for `examples/everything`; of those that are not scored 44 are of the tasks extension. */
const least = { "2026-07-28": 120, "2026-07-28 unscored": 76, "2025-11-25": 70, "2025-06-18": 56, "2025-03-26": 3 }

/** Judges the server at `url`, or else one that is started. `width` clips messages. */
export const judge = async (url: string | undefined, width: number | undefined): Promise<Report> => {
  const server = url === undefined ? await Everything.start() : { url, stop: async () => {} }
  try {
    console.log(`against ${server.url}\n`)
    const outcomes: Array<Outcome> = []
    for (const round of rounds) {
      outcomes.push(...await Promise.all(round.map((selection) => Suite.run(server.url, selection))))
    }
    return report(outcomes.toSorted((a, b) => a.revision < b.revision ? 1 : -1), {
      width,
      // Another server may answer as JSON what only a stream is checked for.
      least: url === undefined ? least : undefined
    })
  } finally {
    await server.stop()
  }
}
