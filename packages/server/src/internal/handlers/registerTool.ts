/**
 * Registers a tool with its handler: checks its definition, and makes its entry of the catalog.
 */
import { quote } from "@skein/protocol/Text"
import type * as WireTool from "@skein/protocol/Tool"
import * as Effect from "effect/Effect"
import type { ToolEntry } from "../../Catalog.ts"
import type { HandlerError } from "../../HandlerError.ts"
import * as Logging from "../../Logging.ts"
import { omitUndefined } from "../base/json.ts"
import * as jsonSchema from "../schema/jsonSchema.ts"
import type { Register } from "./captureServices.ts"
import { refuseForeign } from "./foreignOptions.ts"
import * as toolCall from "./toolCall.ts"
import { withVersion } from "./toolVersion.ts"

/** The members of the tool as clients see it that its options do not have. */
type Made = "name" | "inputSchema" | "outputSchema"

/** A tool: its members are those of `Tool`. */
interface Definition<Input, Output> extends toolCall.Schemas<Input, Output> {
  readonly options:
    & { readonly [Key in Exclude<keyof WireTool.Tool, Made>]?: WireTool.Tool[Key] | undefined }
    & Pick<ToolEntry, "metadata" | "tags" | "visible">
    & { readonly listedAs?: ToolEntry["listedAs"] | undefined; readonly version?: string | undefined }
}

/** Makes the function that registers a tool with its handler. */
export const registerTool = <Input, Output, E extends HandlerError, R>(
  how: "add" | "replace",
  tool: Definition<Input, Output>,
  handler: (input: Input) => Effect.Effect<unknown, E, R>
): Register<R> =>
(catalog, provide) =>
  Effect.flatMap(describe(tool), ({ definition, headers }) => {
    const { listedAs, visible } = tool.options
    return catalog.tools[how](tool.name, {
      definition,
      visible,
      ...(listedAs === undefined ? undefined : { listedAs }),
      metadata: tool.options.metadata,
      tags: tool.options.tags,
      headers,
      call: toolCall.make(tool, (input) => provide(handler(input)))
    })
  })

/**
 * "Tool names SHOULD be between 1 and 128 characters", of these and no others (2025-11-25, "Tool Names"). The warning is
 * for the author: a client whose call adds the tool does not receive it.
 */
const warnAboutName = (name: string): Effect.Effect<void> =>
  /^[\w.-]{1,128}$/.test(name)
    ? Effect.void
    : Logging.withheld(Effect.logWarning(
      `The tool name ${quote(name)} should be 1 to 128 characters of A-Z a-z 0-9 _ - .`
    ))

/** Makes the tool as `tools/list` returns it, and lists the arguments that clients copy into headers. */
const describe = Effect.fnUntraced(
  function*<Input, Output>({ input, name, options, output }: Definition<Input, Output>) {
    yield* warnAboutName(name)
    yield* refuseForeign("tool", name, options)
    // Every option that is not taken out here is sent in `tools/list`.
    const { listedAs: _, metadata: __, tags: ___, visible: ____, ...listed } = options
    const inputSchema = input === undefined
      ? jsonSchema.none
      : yield* jsonSchema.tryForTool(name, "input", input.jsonSchema)
    const outputSchema = output === undefined
      ? undefined
      : yield* jsonSchema.tryForTool(name, "output", output.jsonSchema)
    const headers = yield* jsonSchema.tryForTool(name, "input", () => jsonSchema.headers(inputSchema))
    return {
      definition: {
        name,
        ...omitUndefined(withVersion(listed)),
        inputSchema,
        ...(outputSchema === undefined ? undefined : { outputSchema })
      },
      headers
    } satisfies Pick<ToolEntry, "definition" | "headers">
  }
)
