/** The result of the program in every environment. */
import { assert } from "@effect/vitest"
import type { Seen, Servers } from "./program.ts"

const visit = (server: string, revision: string, kept: number, cut: string) => ({
  revision,
  server,
  tools: 10,
  kept,
  mirrored: "Grüße 3",
  progress: [1, 2, "done"],
  question: "Ada, a haiku, file:///notes",
  begun: "it has begun",
  cancelled: "it was cancelled",
  changes: ["Subscribed", "ToolListChanged"],
  resumed: "you came back",
  cut
})

/** The result without `refused`, whose messages depend on the environment. */
export const expected = {
  modern: visit("modern", "2026-07-28", 1, "Closed"),
  session: visit("session", "2025-11-25", 0, "nothing is lost"),
  pooled: [["modern", true], ["session", true], ["nobody", false]],
  beside: Array(5).fill("done"),
  deaf: Array(8).fill("done")
}

/** Asserts that a page got this result, and messages with all that a page can find out. */
export const judgePage = ({ refused, ...seen }: Seen, servers: Servers, page: string): void => {
  assert.deepEqual(seen as object, expected)
  const { foreign, moved, nobody, unreadable } = refused
  for (
    const [why, url] of [[foreign, servers.foreign], [unreadable, servers.unreadable], [
      nobody,
      servers.nobody
    ]] as const
  ) {
    assert.deepEqual(why, {
      reason: "ConnectionFailed",
      message:
        `${
          new URL(url).origin
        } cannot be asked: Failed to fetch. A page is not told why. Perhaps nobody listens there; ` +
        `or the server does not let pages of ${page} in, or read its answers (CORS); or this page may not ask it ` +
        "(https: asks http:, Content-Security-Policy, the local network)"
    })
  }
  assert.deepEqual(moved, {
    reason: "HttpError",
    message: `${
      new URL(servers.moved).origin
    } redirects, and where to a page is not told: use the address that it leads to`
  })
}
