/** Common mistakes of authors, and the lines of the compiler that name them. */
import { describe, expect, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "../../..")

/** The programs, each with one mistake, and the text that a line of the compiler's output must have. */
const mistakes: Readonly<Record<string, readonly [program: string, line: string]>> = {
  "fields of zod": [
    "Tool.make(\"t\", { input: { city: z.string() } })",
    "For another library, pass the schema of the whole object, such as z.object({ … })"
  ],
  "fields of zod for the output": [
    "Tool.make(\"t\", { output: { city: z.string() } })",
    "The fields of `output` are not all Effect Schemas."
  ],
  "an input that is a text": [
    "Tool.make(\"t\", { input: Schema.String })",
    "The `input` of a tool must be an object: its arguments have names"
  ],
  "an input of zod that is a list": [
    "Tool.make(\"t\", { input: z.array(z.string()) })",
    "The `input` of a tool must be an object: its arguments have names"
  ],
  "a result of another SDK": [
    "Tool.layer(Tool.make(\"t\"), () => Effect.succeed({ content: [{ type: \"text\", text: \"x\" }] }))",
    "return the content blocks themselves, or Tool.result({ content, … })"
  ],
  "a result of another SDK in an async handler": [
    "Tool.async(Tool.make(\"t\"), async () => ({ content: [{ type: \"text\", text: \"x\" }] }))",
    "return the content blocks themselves, or Tool.result({ content, … })"
  ],
  "a function of a handler": [
    "Tool.layer(Tool.make(\"t\"), () => Effect.succeed(() => 1))",
    "a function has no JSON: call it, and return its result"
  ],
  "a function of an async handler": [
    "Tool.async(Tool.make(\"t\"), async () => () => 1)",
    "a function has no JSON: call it, and return its result"
  ],
  "a function of a handler of an async server": [
    "server.tool(\"t\", {}, () => () => 1)",
    "a function has no JSON: call it, and return its result"
  ],
  "an effect of an async handler": [
    "Tool.async(Tool.make(\"t\"), () => Effect.succeed(1))",
    "an effect has no JSON: run it, or return it as the effect of Tool.layer"
  ],
  "a promise in an effect": [
    "Tool.layer(Tool.make(\"t\"), () => Effect.succeed(Promise.resolve(1)))",
    "a promise has no JSON: await it, or wrap it in Effect.promise"
  ],
  bytes: [
    "Tool.async(Tool.make(\"t\"), async () => new Uint8Array(1))",
    "bytes have no JSON: return Content.image, Content.audio or Content.resource"
  ],
  "a result of another SDK in a handler of an async server": [
    "server.tool(\"t\", {}, () => ({ content: [{ type: \"text\", text: \"x\" }], isError: true }))",
    "return the content blocks themselves, or Tool.result({ content, … })"
  ],
  "fields of zod for the arguments of a prompt": [
    "Prompt.make(\"p\", { arguments: { city: z.string() } })",
    "The fields of `arguments` are not all Effect Schemas. For another library, pass the schema of the whole object"
  ],
  "fields of zod for a prompt of an async server": [
    "server.prompt(\"p\", { arguments: { city: z.string() } }, ({ city }) => city)",
    "The fields of `arguments` are not all Effect Schemas. For another library, pass the schema of the whole object"
  ],
  "an argument of a prompt that is not a text": [
    "Prompt.make(\"p\", { arguments: z.object({ days: z.number() }) })",
    "`days` of `arguments` does not read text: a client sends every value as text"
  ],
  "an argument of a prompt that is not a text, as an Effect Schema": [
    "Prompt.make(\"p\", { arguments: { days: Schema.Int } })",
    "`days` of `arguments` does not read text: a client sends every value as text"
  ],
  "arguments of a prompt that are not an object": [
    "Prompt.make(\"p\", { arguments: z.string() })",
    "The `arguments` must be an object: they have names"
  ],
  "fields of zod for the variables of a template": [
    "ResourceTemplate.make(\"a://{id}\", { name: \"a\", variables: { id: z.string() } })",
    "The fields of `variables` are not all Effect Schemas. For another library, pass the schema of the whole object"
  ],
  "a variable that the template does not have": [
    "ResourceTemplate.make(\"a://{id}\", { name: \"a\", variables: z.object({ name: z.string() }) })",
    "The template has no variable name"
  ],
  "a variable that is not a text": [
    "server.template(\"a://{id}\", { name: \"a\", variables: z.object({ id: z.number() }) }, ({ id }) => `${id}`)",
    "`id` of `variables` does not read text: a client sends every value as text"
  ],
  "fields of zod for a state": [
    "State.make(\"s\", { schema: { n: z.number() }, initial: { n: 0 } })",
    "pass the schema of the whole value, such as Schema.Struct({ … }) or z.object({ … })"
  ],
  "a schema of zod that changes the type of a state": [
    "State.make(\"s\", { schema: z.string().transform(Number), initial: 0 })",
    "The schema must accept the values that it returns: a state validates them again when it reads them"
  ],
  "fields of zod for a form": [
    "export const n = Elicitation.form(\"How many?\", { n: z.int() })",
    "The fields of a form are not all Effect Schemas of texts, numbers, booleans or choices. For another library, pass the schema of the whole object"
  ],
  "fields of zod for a form of an async handler": [
    "server.tool(\"t\", {}, async (_, { elicit }) => (await elicit(\"How many?\", { n: z.int() })).action)",
    "The fields of a form are not all Effect Schemas of texts, numbers, booleans or choices. For another library, pass the schema of the whole object"
  ],
  "a service that is not provided": [
    "Stdio.runMain(McpServer.layer({ name: \"s\", version: \"1\" }, Tool.layer(Tool.make(\"t\"), () => Effect.as(Db, \"\"))))",
    "Type 'Db' is not assignable to type 'never'."
  ]
}

const head = `import type { AsyncServer } from "@skein/server/AsyncServer"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Prompt from "@skein/server/Prompt"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as State from "@skein/server/State"
import * as Stdio from "@skein/server/Stdio"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { z } from "zod"
export class Db extends Context.Service<Db, {}>()("Db") {}
export declare const server: AsyncServer
export const used = [Elicitation, McpServer, Prompt, ResourceTemplate, State, Stdio, Tool, Effect, Schema, z]
`

/** The line of the program. */
const lineOfProgram = head.split("\n").length

/** Compiles the programs together. Returns the output of the compiler for each. */
const compile = (): ReadonlyMap<string, string> => {
  const cache = join(root, "node_modules/.cache")
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, "skein-type-errors-"))
  try {
    const names = Object.keys(mistakes)
    names.forEach((name, at) => writeFileSync(join(folder, `m${at}.ts`), `${head}${mistakes[name]![0]}\n`))
    const compilerOptions = { noEmit: true, composite: false, incremental: false, plugins: [] }
    const config = { extends: join(root, "tsconfig.base.json"), compilerOptions, include: ["."] }
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config))
    const { stdout } = spawnSync(join(root, "node_modules/.bin/tsc"), ["-p", folder, "--pretty", "false"], {
      cwd: root,
      encoding: "utf8"
    })
    const parts = stdout.split(/^(?=\S*\bm\d+\.ts\()/m)
    return new Map(names.map((name, at) => [name, parts.filter((part) => part.includes(`m${at}.ts(`)).join("")]))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe("the compiler names the mistake", () => {
  const output = compile()
  for (const [name, [program, line]] of Object.entries(mistakes)) {
    it(name, () => {
      const found = output.get(name) ?? ""
      expect(found, `${program}`).toContain(`m${Object.keys(mistakes).indexOf(name)}.ts(${lineOfProgram},`)
      // The line with the explanation, and few others.
      expect(found.split("\n").filter((text) => text.includes(line)).length, `${found}`).toBeGreaterThanOrEqual(1)
      expect(found.trimEnd().split("\n").length, `${found}`).toBeLessThanOrEqual(8)
    })
  }
})
