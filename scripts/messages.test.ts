import { describe, expect, it } from "@effect/vitest"
import { globSync, readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { messagesOf, packages, pageOf, render } from "./messages.ts"

const root = join(import.meta.dirname, "..")

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

  it("lists a concatenation as one message, with the texts of its conditions", () => {
    const source = "fail(\"the body exceeds \" + name + ` (${size} bytes)` + (known ? \"; raise the bound\" : \"\"))"
    expect(messagesOf(source))
      .toEqual(["the body exceeds ${name} (${size} bytes)${known ? \"; raise the bound\" : \"\"}"])
    expect(messagesOf("refuse(`expected ${a}, got ${b}`)")).toEqual(["expected ${a}, got ${b}"])
  })

  it("leaves out keys, compared values, headers, SQL, markup, styles, code and examples", () => {
    const source = [
      "const details = { \"request id\": 1, scope: \"openid the profile\", examples: [\"call the tool\"] }",
      "if (kind === \"no result\") store.get(\"the key of it\")",
      "const headers = { authorization: \"Bearer some token\", b: \"text/html, text/plain\", c: `Basic ${a} b` }",
      "const query = [\"SELECT a from b\", `where a IN (${b})`, \"(name = ? AND holder = ?)\"]",
      "const page = `<div id=\"options\" class=\"a b\"></div>`",
      "const style = \".column, .card { display: grid; gap: 14px }\"",
      "const code = \"import the from that\"",
      "const key = `${kind} ${name}`"
    ].join("\n")
    expect(messagesOf(source)).toEqual([])
  })

  it("lists the text of markup without its tags", () => {
    expect(messagesOf("f(`<p class=\"a b\">${name} asks for access.</p>`)"))
      .toEqual(["${name} asks for access."])
  })

  it("lists a message once", () => {
    expect(messagesOf("f(\"no such tool\"); g(\"no such tool\")")).toEqual(["no such tool"])
  })
})

describe("docs/messages", () => {
  it.each(packages)("lists the messages of @skein/%s: run `npm run messages` after a change", (name) => {
    expect(readFileSync(pageOf(name), "utf8")).toBe(render(name))
  })

  it("names a bound only if it has an option: the reader would look for it", () => {
    const sources = globSync("packages/*/src/**/*.ts", { cwd: root }).map((path) =>
      readFileSync(join(root, path), "utf8")
    )
    const options = new Set(sources.flatMap((text) => [...text.matchAll(/readonly (\w+)\?:/g)].map(([, name]) => name)))
    const named = packages.flatMap((name) => readFileSync(pageOf(name), "utf8").split("\n"))
      .flatMap((row) =>
        // Without the code of the values.
        [...row.replaceAll(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, "").matchAll(/\b(?:max|min)[A-Z]\w+|\b(?!set)\w+Timeout\b/g)]
          .map(([name]) => ({ name, row }))
      )
    expect(named.length).toBeGreaterThan(20)
    expect(named.filter(({ name }) => !options.has(name))).toEqual([])
  })

  it("has a page for each package and no other", () => {
    expect(readdirSync(dirname(pageOf("any"))).toSorted()).toEqual(packages.map((name) => `${name}.md`))
  })
})
