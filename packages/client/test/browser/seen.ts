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
        `The request to ${new URL(url).origin} failed: Failed to fetch. Browsers do not report the reason. Possible ` +
        `reasons: no server listens there; the server does not allow pages of ${page} (CORS); the browser does not ` +
        "allow this page to send the request (mixed content, Content-Security-Policy, access to the local network)"
    })
  }
  assert.deepEqual(moved, {
    reason: "HttpError",
    message: `${new URL(servers.moved).origin} redirects, and a page cannot see where: use the URL that it redirects to`
  })
}
