/**
 * The text of a generated module: typed functions for the tools, prompts, resources and resource templates of a server.
 *
 * The text depends on the lists of the server alone, so that it is the same each time. Names and descriptions of the
 * server are untrusted: they are written in comments and strings, and identifiers are made of letters and digits.
 */
import type { Prompt } from "@skein/protocol/Prompt"
import type { Resource, ResourceTemplate } from "@skein/protocol/Resource"
import type { Tool } from "@skein/protocol/Tool"
import * as UriTemplate from "@skein/protocol/UriTemplate"
import * as Result from "effect/Result"
import { camel, Names, pascal, typeNames } from "./names.ts"
import { type SchemaCode, schemaCode } from "./schemaCode.ts"
import { docComment, literal, printCode } from "./sourceText.ts"

/** The lists of a server. */
export interface Offered {
  /** The name of the server, as it sent it. */
  readonly server: string | undefined
  readonly tools: ReadonlyArray<Tool>
  readonly prompts: ReadonlyArray<Prompt>
  readonly resources: ReadonlyArray<Resource>
  readonly templates: ReadonlyArray<ResourceTemplate>
}

/** A generated module, and notes about parts of the server that it does not have exactly. */
export interface ClientModule {
  readonly text: string
  readonly notes: ReadonlyArray<string>
}

/** A part of the module. */
interface Part {
  /** Declarations before the functions. */
  readonly declarations: string
  /** A member of the functions. */
  readonly member: string
  /** Whether a part of a schema became any JSON value. */
  readonly isPartial?: boolean
}

const partial = "A part of its schema has no type, and is any JSON value."

const declare = (name: string, { code, definitions, isPartial }: SchemaCode, about: string): string => {
  const before = definitions.map(({ code, name, type }) =>
    type === undefined
      ? `export const ${name} = ${printCode(code)}\nexport type ${name} = typeof ${name}.Type\n\n`
      : `export type ${name} = ${printCode(type)}\nexport const ${name}: Schema.Codec<${name}> = ${printCode(code)}\n\n`
  )
  return before.join("") + docComment([about, isPartial ? partial : undefined]) +
    `export const ${name} = ${printCode(code)}\nexport type ${name} = typeof ${name}.Type\n`
}

/** The description of a tool, with its title before it. */
const described = (title: string | undefined, description: string | undefined): ReadonlyArray<string | undefined> =>
  title === description ? [description] : [title, description]

const hasRequired = (schema: object): boolean => {
  const { required } = schema as { readonly required?: unknown }
  return Array.isArray(required) && required.length > 0
}

const toolPart = (tool: Tool, types: Names, members: Names): Part => {
  const { annotations, description, inputSchema, name, outputSchema, title } = tool
  const base = types.take(pascal(name, "Tool"), ["Input", "Output"])
  const shown = JSON.stringify(name)
  const input = schemaCode(inputSchema, "arguments", base, types)
  const output = outputSchema === undefined ? undefined : schemaCode(outputSchema, "result", base, types)
  const declarations = [declare(`${base}Input`, input, `The arguments of the tool ${shown}.`)]
  if (output !== undefined) {
    declarations.push(declare(`${base}Output`, output, `The structured content of the tool ${shown}.`))
  }
  const args = `args${hasRequired(inputSchema) ? "" : "?"}: ${base}Input`
  const result = outputSchema === undefined ? "ToolFailed[\"result\"]" : `${base}Output`
  const call = outputSchema === undefined
    ? `succeeded(client.callTool(${literal(name)}, args, options))`
    : `client.callTool(${literal(name)}, args, { ...options, output: ${base}Output })`
  const member = camel(name, "tool")
  const parameters = `${args}, options?: Client.CallToolOptions`
  return {
    declarations: declarations.join("\n"),
    isPartial: input.isPartial || output?.isPartial === true,
    member: docComment([...described(title ?? annotations?.title, description), `The tool ${shown}.`], "    ") +
      `    ${members.take(member)}: (${parameters}): Effect.Effect<${result}, ClientError> =>\n      ${call}`
  }
}

const key = (name: string): string => /^[A-Za-z_$][\w$]*$/.test(name) ? name : literal(name)

const promptPart = (prompt: Prompt, types: Names, members: Names): Part => {
  const { arguments: args = [], description, name, title } = prompt
  const shown = JSON.stringify(name)
  const documented = docComment([...described(title, description), `The prompt ${shown}.`], "    ")
  const member = (parameters: string, given: string): string =>
    `${documented}    ${members.take(camel(name, "prompt"))}: (${parameters}options?: Client.RequestOptions) =>` +
    `${parameters === "" ? " " : "\n      "}client.getPrompt(${literal(name)}, ${given}, options)`
  if (args.length === 0) return { declarations: "", member: member("", "undefined") }
  const base = types.take(pascal(name, "Prompt"), ["Arguments"])
  // A server may list an argument twice. The last one counts.
  const fields = [...new Map(args.map((arg) => [arg.name, arg])).values()].map((
    { description, name, required, title }
  ) =>
    `${docComment(described(title, description), "  ")}  readonly ${key(name)}${required === true ? "" : "?"}: string`
  )
  const isOptional = args.every(({ required }) => required !== true)
  return {
    // A type and not an interface: only a type has the index signature that the arguments of a prompt need.
    declarations: `${docComment([`The arguments of the prompt ${shown}.`])}export type ${base}Arguments = {\n${
      fields.join("\n")
    }\n}\n`,
    member: member(`args${isOptional ? "?" : ""}: ${base}Arguments, `, "args")
  }
}

const resourcePart = ({ description, name, title, uri }: Resource, members: Names): Part => ({
  declarations: "",
  member: docComment([...described(title, description), `The resource ${JSON.stringify(uri)}.`], "    ") +
    `    ${members.take(camel(name === uri ? uri.replace(/^[\w.+-]+:/, "") : name, "resource"))}` +
    `: (options?: Client.RequestOptions) =>\n      client.readResource(${literal(uri)}, options)`
})

const templatePart = (
  { description, name, title, uriTemplate }: ResourceTemplate,
  members: Names,
  constants: Names
): Part | undefined => {
  const template = UriTemplate.make(uriTemplate)
  if (Result.isFailure(template)) return undefined
  const names = [...new Set(template.success.names)]
  const constant = constants.take(camel(name, "template"), ["Template"])
  const fields = names.map((variable) => `readonly ${key(variable)}?: UriTemplate.Value`).join("; ")
  const parameters = names.length === 0
    ? "options?: Client.RequestOptions"
    : `variables: { ${fields} }, options?: Client.RequestOptions`
  const uri = `UriTemplate.expand(${constant}Template, ${names.length === 0 ? "{}" : "variables"})`
  return {
    declarations: `const ${constant}Template = Result.getOrThrow(UriTemplate.make(${literal(uriTemplate)}))\n`,
    member: docComment(
      [...described(title, description), `The resource template ${JSON.stringify(uriTemplate)}.`],
      "    "
    ) + `    ${members.take(camel(name, "template"))}: (${parameters}) =>\n      client.readResource(${uri}, options)`
  }
}

const succeeded =
  `/** Fails with \`ToolFailed\` if the result has \`isError\`, as the calls with an output schema do. */
const succeeded = (
  called: Effect.Effect<ToolFailed["result"], ClientError>
): Effect.Effect<ToolFailed["result"], ClientError> =>
  Effect.flatMap(called, (result) => {
    if (result.isError !== true) return Effect.succeed(result)
    const text = result.content.find((block) => block.type === "text")?.text ?? "its result has no text"
    const message = \`The tool failed: \${text.slice(0, 1_024).replace(/[\\ud800-\\udbff]$/, "")}\`
    return Effect.fail(new ClientError({ reason: new ToolFailed({ message, result }), method: "tools/call" }))
  })
`

const section = (name: string, parts: ReadonlyArray<Part>): ReadonlyArray<string> =>
  parts.length === 0 ? [] : [`  ${name}: {\n${parts.map(({ member }) => member).join(",\n\n")}\n  }`]

/** Makes the text of a module. */
export const clientModule = ({ prompts, resources, server, templates, tools }: Offered): ClientModule => {
  const types = typeNames()
  const constants = new Names(["client", "make", "succeeded"])
  const toolNames = new Names()
  const toolParts = tools.map((tool) => toolPart(tool, types, toolNames))
  const promptNames = new Names()
  const promptParts = prompts.map((prompt) => promptPart(prompt, types, promptNames))
  const resourceNames = new Names()
  const resourceParts = resources.map((resource) => resourcePart(resource, resourceNames))
  const templateMembers = new Names()
  const notes: Array<string> = []
  const templateParts = templates.flatMap((template) => {
    const part = templatePart(template, templateMembers, constants)
    if (part !== undefined) return [part]
    notes.push(`The resource template ${JSON.stringify(template.uriTemplate)} cannot be parsed, and was left out`)
    return []
  })
  for (const [at, { isPartial }] of toolParts.entries()) {
    if (isPartial === true) {
      notes.push(`A part of a schema of the tool ${JSON.stringify(tools[at]!.name)} has no type`)
    }
  }
  const usesContent = tools.some(({ outputSchema }) => outputSchema === undefined)
  const imports = [
    "import type * as Client from \"@skein/client/Client\"",
    ...usesContent
      ? ["import { ClientError, ToolFailed } from \"@skein/client/ClientError\""]
      : tools.length > 0
      ? ["import type { ClientError } from \"@skein/client/ClientError\""]
      : [],
    ...templateParts.length > 0 ? ["import * as UriTemplate from \"@skein/client/UriTemplate\""] : [],
    ...tools.length > 0
      ? [`import ${usesContent ? "" : "type "}* as Effect from "effect/Effect"`]
      : [],
    ...templateParts.length > 0 ? ["import * as Result from \"effect/Result\""] : [],
    ...tools.length > 0 ? ["import * as Schema from \"effect/Schema\""] : []
  ]
  const who = server === undefined ? "an MCP server" : `the MCP server ${JSON.stringify(server)}`
  const declarations = [...toolParts, ...promptParts, ...templateParts]
    .flatMap(({ declarations }) => declarations === "" ? [] : [declarations])
  const sections = [
    ...section("tools", toolParts),
    ...section("prompts", promptParts),
    ...section("resources", resourceParts),
    ...section("templates", templateParts)
  ]
  const text = [
    docComment([
      `A typed client of ${who}.`,
      "This file was generated by `skein generate-client`. Do not change it: generate it again when the server has changed."
    ]).trimEnd() + `\n${imports.join("\n")}\n`,
    ...declarations,
    ...usesContent ? [succeeded] : [],
    "/** The members of a client that the functions call. */\n" +
    "export type Caller = Pick<Client.Client, \"callTool\" | \"getPrompt\" | \"readResource\">\n",
    docComment([`Makes the functions of ${who} for a connected client.`]) +
    `export const make = (${sections.length === 0 ? "_client" : "client"}: Caller) => ({\n${sections.join(",\n")}\n})\n`
  ].join("\n")
  return { text, notes }
}
