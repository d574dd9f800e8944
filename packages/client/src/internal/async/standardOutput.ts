/**
 * Validates the structured content of a tool's result by a Standard Schema (https://standardschema.dev), such as one of
 * zod.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import * as PrintableError from "@skein/protocol/PrintableError"
import { quote } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import type { ClientError } from "../../ClientError.ts"
import { decodeBy } from "../calls/output.ts"

/** The number of problems in one message. */
const maxProblems = 10

/** The number of keys in the path of one problem. */
const maxKeys = 64

/** Why the schema rejects the value. It is the `cause` of `InvalidResponse`. */
class SchemaIssues extends PrintableError.tagged("SchemaIssues") {}

const formatIssue = ({ message, path = [] }: StandardSchemaV1.Issue): string => {
  // Each key is shortened: together they may be as long as the value.
  const keys = path.slice(0, maxKeys).map((segment) => String(typeof segment === "object" ? segment.key : segment))
  return keys.length === 0 ? message : `${message} at [${keys.map((key) => quote(key)).join("][")}]`
}

/** Decodes the result of a tool by a Standard Schema. The failures are those of a typed call. */
export const decodeStandard = <A>(
  name: string,
  result: CallToolResult,
  schema: StandardSchemaV1<unknown, A>
): Effect.Effect<A, ClientError> =>
  decodeBy(name, result, (value) =>
    Effect.flatMap(
      // An error that the schema throws is a defect, such as an overflow of the stack.
      Effect.promise(async () => schema["~standard"].validate(value)),
      (validated) =>
        validated.issues === undefined
          ? Effect.succeed(validated.value)
          : Effect.fail(
            new SchemaIssues({ message: validated.issues.slice(0, maxProblems).map(formatIssue).join("\n") })
          )
    ))
