/** Common mistakes of authors, and the first line of the compiler's output, which says what to do. */
import { describe, expect, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "../../..")

/** The programs, each with one mistake, and a text that the first line of the compiler's output must have. */
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
    "Return the content blocks themselves, or Tool.result({ content, … })"
  ],
  "a result of another SDK in an async handler": [
    "Tool.async(Tool.make(\"t\"), async () => ({ content: [{ type: \"text\", text: \"x\" }] }))",
    "Return the content blocks themselves, or Tool.result({ content, … })"
  ],
  "a function of a handler": [
    "Tool.layer(Tool.make(\"t\"), () => Effect.succeed(() => 1))",
    "A function has no JSON: call it, and return its result"
  ],
  "a function of an async handler": [
    "Tool.async(Tool.make(\"t\"), async () => () => 1)",
    "A function has no JSON: call it, and return its result"
  ],
  "a function of a handler of an async server": [
    "server.tool(\"t\", {}, () => () => 1)",
    "A function has no JSON: call it, and return its result"
  ],
  "an effect of an async handler": [
    "Tool.async(Tool.make(\"t\"), () => Effect.succeed(1))",
    "An effect has no JSON: run it, or return it as the effect of Tool.layer"
  ],
  "a promise in an effect": [
    "Tool.layer(Tool.make(\"t\"), () => Effect.succeed(Promise.resolve(1)))",
    "A promise has no JSON: await it, or wrap it in Effect.promise"
  ],
  bytes: [
    "Tool.async(Tool.make(\"t\"), async () => new Uint8Array(1))",
    "Bytes have no JSON: return Content.image, Content.audio or Content.resource"
  ],
  "a result of another SDK in a handler of an async server": [
    "server.tool(\"t\", {}, () => ({ content: [{ type: \"text\", text: \"x\" }], isError: true }))",
    "Return the content blocks themselves, or Tool.result({ content, … })"
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
    "The service Db is missing: provide its layer with Layer.provide"
  ],
  "a result that does not match the output": [
    "Tool.layer(Tool.make(\"t\", { output: { n: Schema.Int } }), () => Effect.succeed({ n: \"x\" }))",
    "`n` does not match `output`"
  ],
  "a result of an async server that does not match the output": [
    "server.tool(\"t\", { output: z.object({ n: z.number() }) }, async () => ({ n: \"x\" }))",
    "`n` does not match `output`"
  ],
  "an unknown value": [
    "server.tool(\"t\", {}, async () => await response.json())",
    "The type of the value is unknown: validate it with a schema, or give it a type"
  ],
  "a tool as one object": [
    "server.tool({ name: \"t\", parameters: z.object({}), execute: async () => \"x\" })",
    "A tool needs a name, options and a handler"
  ],
  "a tool without options": [
    "server.tool(\"t\", () => \"x\")",
    "A tool needs options before its handler"
  ],
  inputSchema: [
    "server.tool(\"t\", { inputSchema: { a: z.string() } }, async () => \"x\")",
    "It is named `input` here"
  ],
  "inputSchema of a definition": [
    "Tool.make(\"t\", { inputSchema: Schema.Struct({}) })",
    "It is named `input` here"
  ],
  parameters: [
    "Tool.make(\"t\", { parameters: z.object({}) })",
    "It is named `input` here"
  ],
  "an unknown argument": [
    "server.tool(\"t\", { input: z.object({ city: z.string() }) }, ({ town }) => town)",
    "Property 'town' does not exist"
  ],
  "progress with two numbers": [
    "server.tool(\"t\", {}, async (_, { progress }) => void await progress(1, 2))",
    "Pass one object: progress({ progress: 1, total: 2 })"
  ],
  "the completion of an unknown argument": [
    "server.prompt(\"p\", { arguments: z.object({ city: z.string() }) }, ({ city }) => city, { complete: { town: [\"a\"] } })",
    "'town' does not exist"
  ],
  "the content of an answer that was not accepted": [
    "server.tool(\"t\", {}, async (_, { elicit }) => String((await elicit(\"n?\", { n: Schema.Int })).content.n))",
    "Property 'content' does not exist on type 'Answer"
  ],
  "a Map": [
    "server.tool(\"t\", {}, () => new Map([[1, 2]]))",
    "A Map has no JSON: return Object.fromEntries(map), or an array"
  ],
  "a Map of an effect": [
    "Tool.layer(Tool.make(\"t\"), () => Effect.succeed(new Map()))",
    "A Map has no JSON: return Object.fromEntries(map), or an array"
  ],
  "a Set": [
    "server.tool(\"t\", {}, async () => new Set([1]))",
    "A Set has no JSON: return Array.from(set)"
  ],
  "a Response": [
    "server.tool(\"t\", {}, async () => new Response(\"x\"))",
    "A Response has no JSON: return await response.text()"
  ],
  "a generator": [
    "server.tool(\"t\", {}, function*() { yield \"a\" })",
    "A generator has no JSON"
  ],
  "a generator in the place of an effect": [
    "Tool.layer(Tool.make(\"t\"), function*() { return yield* Db })",
    "Wrap the generator in Effect.gen or Effect.fn"
  ],
  "a nested form of zod": [
    "server.tool(\"t\", {}, async (_, { elicit }) => (await elicit(\"n?\", z.object({ a: z.object({}) }))).action)",
    "The field `a` of a form must be a text, a number, a boolean or a choice: a form is flat"
  ],
  "a nested form": [
    "export const n = Elicitation.form(\"n?\", { a: Schema.Struct({}) })",
    "The fields of a form are not all Effect Schemas of texts, numbers, booleans or choices"
  ],
  "a definition without a handler": [
    "McpServer.layer({ name: \"s\", version: \"1\" }, Tool.make(\"t\"))",
    "A definition needs its handler: use Tool.layer(definition, handler) or Tool.async(definition, handler)"
  ],
  "a definition of a prompt without a handler": [
    "McpServer.layer({ name: \"s\", version: \"1\" }, Tool.layer(Tool.make(\"ok\"), () => Effect.void), Prompt.make(\"t\"))",
    "A definition needs its handler: use Prompt.layer(definition, handler)"
  ],
  "a definition without a handler for an async server": [
    "server.use(Tool.make(\"t\"))",
    "A definition needs its handler: use Tool.layer(definition, handler)"
  ],
  "a service that an async server does not have": [
    "server.use(Tool.layer(Tool.make(\"t\"), () => Effect.as(Db, \"\")))",
    "The service Db is missing: provide its layer with Layer.provide"
  ],
  "a handler without an effect": [
    "Tool.layer(Tool.make(\"t\"), () => \"x\")",
    "is not assignable to type 'Effect<AnyAnswer"
  ],
  "a failure that is a text": [
    "Tool.layer(Tool.make(\"t\"), () => Effect.fail(\"no\"))",
    "An error of a handler needs a message: fail with a tagged error or a VisibleError, or use Effect.orDie"
  ],
  "a failure without a message": [
    "Tool.layer(Tool.make(\"t\"), () => Effect.fail({ code: 1 }))",
    "An error of a handler needs a message"
  ],
  "an async function": [
    "Tool.layer(Tool.make(\"t\", { input: { a: Schema.String } }), async ({ a }) => a)",
    "Tool.layer needs an effect, and not a promise: use Tool.async"
  ],
  "an async function with a block": [
    "Tool.layer(Tool.make(\"t\"), async () => { await Promise.resolve(); return \"x\" })",
    "Tool.layer needs an effect, and not a promise: use Tool.async"
  ],
  "an async function of a prompt": [
    "Prompt.layer(Prompt.make(\"t\"), async () => \"x\")",
    "Prompt.layer needs an effect, and not a promise: use Prompt.async"
  ],
  "an async reader": [
    "Resource.layer(Resource.make(\"a://b\"), async () => \"x\")",
    "Resource.layer needs an effect: return Effect.succeed(value), or use Resource.async"
  ],
  "an async reader of a template": [
    "ResourceTemplate.layer(ResourceTemplate.make(\"a://{b}\", { name: \"x\" }), async () => \"x\")",
    "ResourceTemplate.layer needs an effect, and not a promise: use ResourceTemplate.async"
  ],
  "a resource that is not released": [
    "Stdio.runMain(McpServer.layer({ name: \"s\", version: \"1\" }, Tool.layer(Tool.make(\"t\"), () => Effect.addFinalizer(() => Effect.void))))",
    "A handler acquires a resource: wrap its effect in Effect.scoped"
  ],
  "definitions in the place of a server": [
    "Stdio.runMain(Tool.layer(Tool.make(\"t\"), () => Effect.void))",
    "These are definitions without a server: pass them to McpServer.layer({ name, version }, …)"
  ],
  "a definition in the place of a server": [
    "NodeHttp.runMain(Tool.make(\"t\"))",
    "A definition needs its handler: use Tool.layer(definition, handler)"
  ],
  "an async server in the place of a layer": [
    "Stdio.runMain(server)",
    "An AsyncServer runs itself: use server.runStdio(), server.runHttp() or server.toLayer()"
  ],
  "a service that an HTTP server does not have": [
    "NodeHttp.runMain(McpServer.layer({ name: \"s\", version: \"1\" }, Tool.layer(Tool.make(\"t\"), () => Effect.as(Db, \"\"))))",
    "The service Db is missing: provide its layer with Layer.provide"
  ],
  "a name in the place of the description of a server": [
    "McpServer.layer(\"s\")",
    "A server needs a name and a version: pass { name, version } as its options"
  ],
  "a name in the place of the description of an async server": [
    "new AsyncServer(\"s\")",
    "A server needs a name and a version: pass { name, version } as its options"
  ],
  "a server without a version": [
    "McpServer.layer({ name: \"s\" })",
    "A server needs a name and a version: pass { name, version } as its options"
  ],
  addTool: [
    "server.addTool({ name: \"t\", parameters: z.object({}), execute: async () => \"x\" })",
    "Use server.tool(name, { input }, async ({ … }) => …)"
  ],
  registerTool: [
    "server.registerTool(\"t\", { inputSchema: {} }, async () => ({ content: [] }))",
    "Use server.tool(name, { input }, async ({ … }) => …)"
  ],
  addResource: ["server.addResource({ uri: \"a://b\" })", "Use server.resource(uri, options, async () => …)"],
  addResourceTemplate: [
    "server.addResourceTemplate({ uriTemplate: \"a://{b}\" })",
    "Use server.template(uriTemplate, options, async ({ … }) => …)"
  ],
  registerPrompt: [
    "server.registerPrompt(\"p\", { argsSchema: {} }, () => ({ messages: [] }))",
    "Use server.prompt(name, { arguments }, async ({ … }) => …)"
  ],
  connect: [
    "await server.connect({})",
    "Use server.runStdio(), server.runHttp() or await server.listen()"
  ],
  "the input of a prompt": [
    "server.prompt(\"p\", { input: z.object({ city: z.string() }) }, () => \"x\")",
    "It is named `arguments` here"
  ],
  "completions among the options of a prompt": [
    "Prompt.make(\"p\", { arguments: { a: Schema.String }, complete: { a: [\"b\"] } })",
    "Pass { complete } after the handler"
  ],
  "completions among the options of a template": [
    "ResourceTemplate.make(\"a://{b}\", { name: \"n\", complete: { b: [\"c\"] } })",
    "Pass { complete } after the reader"
  ]
}

/** Programs that are right, and close to a mistake. */
const legal: Readonly<Record<string, string>> = {
  "data with members that other values have":
    "server.tool(\"t\", {}, () => ({ next: \"a\", size: 3, content: \"x\", type: \"page\", at: new Date() }))",
  "blocks of all types":
    "server.tool(\"t\", {}, async () => [{ type: \"text\", text: \"a\" }, { type: \"image\", data: \"aGk=\", mimeType: \"image/png\" }])",
  any: "server.tool(\"t\", {}, async () => JSON.parse(\"{}\"))",
  "a message of a prompt": "Prompt.layer(Prompt.make(\"p\"), () => Effect.succeed(Prompt.user(\"x\")))",
  "an effect or an error":
    "Tool.layer(Tool.make(\"t\"), () => used.length > 1 ? Effect.succeed(\"x\") : McpError.invalidParams(\"no\"))",
  "a generic function":
    "export const wrap = <N extends string, I, O, E extends { readonly message: string }, R>(tool: Tool.Tool<N, I, O>, handler: (input: I) => Effect.Effect<Tool.Answer<NoInfer<O>>, E, R>) => Tool.layer(tool, (input: I) => Effect.tap(handler(input), () => Effect.void))",
  "a generic async function":
    "export const wrap = <N extends string, I, O>(tool: Tool.Tool<N, I, O>, handler: (input: I) => Promise<Tool.Answer<NoInfer<O>>>) => Tool.async(tool, (input) => handler(input))",
  "generic definitions":
    "export const wrap = <const L extends ReadonlyArray<Layer.Layer<never, unknown, unknown>>>(...l: L) => McpServer.layer({ name: \"s\", version: \"1\" }, ...l)",
  "a generic server": "export const wrap = <E>(l: Layer.Layer<McpServer.McpServer, E>) => Stdio.runMain(l)"
}

const head = `import { AsyncServer } from "@skein/server/AsyncServer"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpError from "@skein/server/McpError"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as State from "@skein/server/State"
import * as Stdio from "@skein/server/Stdio"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { z } from "zod"
export class Db extends Context.Service<Db, {}>()("Db") {}
export declare const server: AsyncServer
export declare const response: { json(): Promise<unknown> }
export const used = [Elicitation, McpError, McpServer, NodeHttp, Prompt, Resource, ResourceTemplate, State, Stdio, Tool, Effect, Schema, z]
`

/** The line of the program. */
const lineOfProgram = head.split("\n").length

/**
 * Compiles the programs together, and the sources of all packages without project references, as an editor may. Returns the
 * first line of the compiler's output for each program, without its place, and the lines about the sources.
 */
const compile = (programs: ReadonlyArray<string>): {
  readonly found: ReadonlyArray<string | undefined>
  readonly ofSources: ReadonlyArray<string>
} => {
  const cache = join(root, "node_modules/.cache")
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, "skein-type-errors-"))
  try {
    programs.forEach((program, at) => writeFileSync(join(folder, `m${at}.ts`), `${head}${program}\n`))
    const compilerOptions = { noEmit: true, composite: false, incremental: false, plugins: [] }
    const config = {
      extends: join(root, "tsconfig.base.json"),
      compilerOptions,
      include: [".", join(root, "packages/*/src")]
    }
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config))
    const { stdout } = spawnSync(join(root, "node_modules/.bin/tsc"), ["-p", folder, "--pretty", "false"], {
      cwd: root,
      encoding: "utf8"
    })
    const first = new RegExp(`\\bm(\\d+)\\.ts\\(${lineOfProgram},\\d+\\): error (.*)`)
    const lines = stdout.split("\n").map((line) => first.exec(line))
    return {
      found: programs.map((_, at) => lines.find((line) => line?.[1] === String(at))?.[2]),
      ofSources: stdout.split("\n").filter((line) => /^(?:\.\.\/)*packages\/.*: error /.test(line))
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe("the first line of the compiler names the mistake", () => {
  const wrong = Object.entries(mistakes)
  const right = Object.entries(legal)
  const { found, ofSources } = compile([
    ...wrong.map(([, [program]]) => program),
    ...right.map(([, program]) => program)
  ])
  wrong.forEach(([name, [, line]], at) =>
    it(name, () => {
      expect(found[at]).toContain(line)
    })
  )
  it("the sources compile without project references", () => {
    expect(ofSources).toEqual([])
  })
  right.forEach(([name], at) =>
    it(`accepts ${name}`, () => {
      expect(found[wrong.length + at]).toBeUndefined()
    })
  )
})
