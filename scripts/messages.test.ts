import { describe, expect, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import { dirname } from "node:path"
import { messagesOf, packages, pageOf, render } from "./messages.ts"

describe("messagesOf", () => {
  it("finds error, log and template messages, with the values that they fill in", () => {
    const source = [
      "import { a } from \"not a message\"",
      "type T = \"not a message\"",
      "throw new Error(\"the queue is full\")",
      "Effect.logWarning(`dropped ${count} of ${items.length} notifications`)",
      "const query = sql`select a from b`",
      "const name = \"application/json\""
    ].join("\n")
    expect(messagesOf(source)).toEqual(["the queue is full", "dropped ${count} of ${items.length} notifications"])
  })

  it("lists a message once", () => {
    expect(messagesOf("f(\"no such tool\"); g(\"no such tool\")")).toEqual(["no such tool"])
  })
})

describe("docs/messages", () => {
  it.each(packages)("lists the messages of @skein/%s: run `npm run messages` after a change", (name) => {
    expect(readFileSync(pageOf(name), "utf8")).toBe(render(name))
  })

  it("has a page for each package and no other", () => {
    expect(readdirSync(dirname(pageOf("any"))).toSorted()).toEqual(packages.map((name) => `${name}.md`))
  })
})
