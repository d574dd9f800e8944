import { expect, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { draw, excerpt, path, runTour } from "./recording.ts"

it("docs/tour.svg is what the tour prints: run `npm run recording`", async () => {
  const lines = excerpt(await runTour())
  expect(lines.filter((line) => line.startsWith("  →")).length).toBeGreaterThan(3)
  // The ids of requests may differ from run to run.
  const withoutIds = (text: string): string => text.replaceAll(/("(?:requestId|progressToken)":)\d+/g, "$1_")
  expect(withoutIds(draw(lines))).toBe(withoutIds(readFileSync(path, "utf8")))
}, 120_000)

it("has a place for each line of the tour, also for marks of XML", () => {
  expect(draw(["  → a {\"b\":\"<&>\"}"])).toContain("<tspan class=\"data\"> {\"b\":\"&lt;&amp;&gt;\"}</tspan>")
  expect(() => excerpt("no tour")).toThrow("the tour prints no paragraph that begins with \"2025-11-25:\"")
})
