/**
 * Options of other libraries, and their names here. Types refuse them. Untyped programs pass them, and a definition without
 * its schema or its handler would be served.
 */
import { quote } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import { DefinitionError, InvalidValue } from "../../DefinitionError.ts"

type Names = Readonly<Record<string, string>>

const isInput = "it is named input here"
const isOutput = "it is named output here"
const isArguments = "it is named arguments here"
const isVariables = "it is named variables here"
const follows = (kind: string, what: string): string =>
  `the ${what} is the second argument of ${kind}.layer and ${kind}.async`
const completes = (kind: string): string =>
  `pass it after the handler: ${kind}.layer(definition, handler, { complete })`

const foreign: Readonly<Record<DefinitionError["kind"], Names>> = /* @__PURE__ */ (() => ({
  tool: {
    inputSchema: isInput,
    parameters: isInput,
    outputSchema: isOutput,
    execute: follows("Tool", "handler"),
    handler: follows("Tool", "handler")
  },
  prompt: {
    input: isArguments,
    inputSchema: isArguments,
    argsSchema: isArguments,
    parameters: isArguments,
    complete: completes("Prompt"),
    load: follows("Prompt", "handler"),
    handler: follows("Prompt", "handler")
  },
  resource: { load: follows("Resource", "reader"), read: follows("Resource", "reader") },
  "resource template": {
    arguments: isVariables,
    input: isVariables,
    parameters: isVariables,
    complete: completes("ResourceTemplate"),
    load: follows("ResourceTemplate", "reader"),
    read: follows("ResourceTemplate", "reader")
  }
}))()

/** Fails with `InvalidValue` for an option that another library has in the place of one of these. */
export const refuseForeign = (
  kind: DefinitionError["kind"],
  definition: string,
  options: object
): Effect.Effect<void, DefinitionError> => {
  const names = foreign[kind]
  const option = Object.keys(names).find((name) => Object.hasOwn(options, name))
  if (option === undefined) return Effect.void
  const message = `The ${kind} ${quote(definition)} is invalid: it has no option ${option}: ${names[option]}`
  return Effect.fail(new DefinitionError({ reason: new InvalidValue({ message }), kind, definition }))
}
