/**
 * Registers planned operations as tools, resources and resource templates.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as PrintableError from "@skein/protocol/PrintableError"
import type { Catalog, HandlerServices } from "@skein/server/Catalog"
import * as Content from "@skein/server/Content"
import type { DefinitionError } from "@skein/server/DefinitionError"
import type { HandlerError } from "@skein/server/HandlerError"
import * as JsonSchema from "@skein/server/JsonSchema"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as answers from "../answer/answer.ts"
import { type Outcome, send, type SendOptions } from "../call/send.ts"
import type { Address } from "./address.ts"
import { readArguments } from "./address.ts"
import type { Plan } from "./plan.ts"

/** A message of an API for the reader of a resource. */
class ReadFailed extends PrintableError.tagged("ReadFailed") {}

/** A planned operation with its name, and its address if it is a resource or a template. */
export interface Definition {
  readonly as: "tool" | "resource" | "template"
  readonly name: string
  readonly plan: Plan
  readonly address: Address
}

type Registered<R> = Effect.Effect<void, DefinitionError, Scope.Scope | Catalog | HandlerServices<R>>

/**
 * The structured content of an answer: the object, if the document declares one. A tool with an output schema must have
 * structured content, so that an answer of another kind is described by its status and its text.
 */
const structuredOf = (
  { hasObject, outputSchema }: Plan,
  { object, status, text }: answers.Answer
): JsonObject | undefined =>
  hasObject && object !== undefined
    ? object
    : outputSchema === undefined
    ? undefined
    : { status, ...(text === undefined || text === "" ? undefined : { text }) }

const toResult = (plan: Plan, uri: string, outcome: Outcome): Tool.Result<never> => {
  if (outcome._tag === "Failed") return Tool.result({ isError: true, content: outcome.message })
  const { answer } = outcome
  const structured = structuredOf(plan, answer)
  return Tool.result({
    content: answers.toContent(answer, uri, `The API answered with status ${answer.status} and without content`),
    ...(structured === undefined ? undefined : { structured })
  }) as Tool.Result<never>
}

const registerTool = <E extends HandlerError, R>(
  { address, name, plan }: Definition,
  options: SendOptions<E, R>
): Registered<R> => {
  const tool = Tool.make(name, {
    title: plan.title,
    description: plan.description,
    annotations: plan.annotations,
    tags: plan.operation.tags,
    input: JsonSchema.make<JsonObject>(plan.inputSchema)
  })
  const { outputSchema } = plan
  // It is not validated: every object matches it.
  const output = outputSchema && { jsonSchema: () => outputSchema, compile: () => Result.succeed }
  const described = output === undefined ? tool : { ...tool, output }
  return Tool.add(
    described as typeof tool,
    (args: JsonObject) => Effect.map(send(plan, args, options), (outcome) => toResult(plan, address.uri, outcome))
  )
}

/** The contents of a resource. A missing one is an error of the protocol; other failures carry their message. */
const toContents = (uri: string, outcome: Outcome): Effect.Effect<Resource.Answer, HandlerError> => {
  if (outcome._tag === "Answered") {
    const { bytes, mediaType, text } = outcome.answer
    return Effect.succeed([Content.resourceContents(uri, text ?? bytes, mediaType === "" ? undefined : mediaType)])
  }
  return outcome.status === 404 || outcome.status === 410
    ? Effect.fail(Resource.notFound(uri))
    : Effect.fail(new ReadFailed({ message: outcome.message }))
}

const registerReader = <E extends HandlerError, R>(
  { address, as, name, plan }: Definition,
  options: SendOptions<E, R>
): Registered<R> => {
  const { description, title } = plan
  // Credentials may differ between callers, and so do answers.
  const described = { name, title, description, cacheScope: "private" as const }
  const readWith = (uri: string, args: JsonObject | string): Effect.Effect<Resource.Answer, HandlerError, R> =>
    typeof args === "string"
      ? Effect.fail(new ReadFailed({ message: args }))
      : Effect.flatMap(send(plan, args, options), (outcome) => toContents(uri, outcome))
  if (as === "resource") return Resource.add(Resource.make(address.uri, described), readWith(address.uri, {}))
  const template = ResourceTemplate.make<string>(address.template, described)
  return ResourceTemplate.add(
    template,
    (variables, uri) => readWith(uri, readArguments(plan, address, isObject(variables) ? variables : {}))
  )
}

/** Registers an operation until the scope closes. */
export const register = <E extends HandlerError, R>(
  definition: Definition,
  options: SendOptions<E, R>
): Registered<R> => definition.as === "tool" ? registerTool(definition, options) : registerReader(definition, options)
