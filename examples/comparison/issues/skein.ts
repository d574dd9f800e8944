/** An issue tracker over HTTP. Every request needs a token of the issuer; changes need the scope `issues:write`. */
import * as Protect from "@skein/auth/Protect"
import * as Scopes from "@skein/auth/Scopes"
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Principal from "@skein/server/Principal"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import { Data, Effect, Option, Schema } from "effect"

const Status = Schema.Literals(["open", "closed"])
const Issue = Schema.Struct({
  id: Schema.Int,
  title: Schema.String,
  body: Schema.String,
  labels: Schema.Array(Schema.String),
  status: Status,
  author: Schema.String,
  comments: Schema.Array(Schema.Struct({ author: Schema.String, text: Schema.String }))
})
type Issue = typeof Issue.Type

class UnknownIssue extends Data.TaggedError("UnknownIssue")<{ readonly message: string }> {}

const issues = new Map<number, Issue>()
const user = Effect.map(Principal.current, (principal) => String(Option.getOrThrow(principal)["name"]))
const find = (id: number) =>
  Effect.mapError(
    Effect.fromNullishOr(issues.get(id)),
    () => new UnknownIssue({ message: `No issue ${id}: call list_issues` })
  )
const save = (issue: Issue) => {
  issues.set(issue.id, issue)
  return Effect.as(Catalog.updated(`issues://${issue.id}`), issue)
}

const list = Tool.make("list_issues", {
  description: "Lists issues, the newest first.",
  input: { status: Schema.optionalKey(Status), label: Schema.optionalKey(Schema.String) },
  output: { issues: Schema.Array(Issue) },
  annotations: { readOnlyHint: true }
})
const create = Tool.make("create_issue", {
  description: "Creates an issue.",
  input: {
    title: Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(200)),
    body: Schema.optionalKey(Schema.String),
    labels: Schema.optionalKey(Schema.Array(Schema.String))
  },
  output: Issue
})
const comment = Tool.make("add_comment", {
  description: "Adds a comment to an issue.",
  input: { id: Schema.Int, text: Schema.String },
  output: Issue
})
const close = Tool.make("close_issue", {
  description: "Closes an issue.",
  input: { id: Schema.Int },
  output: Issue,
  annotations: { idempotentHint: true }
})
const variables = { id: Schema.NumberFromString }
const one = ResourceTemplate.make("issues://{id}", { name: "issue", mimeType: "application/json", variables })
const triage = Prompt.make("triage", { description: "Asks for a label and a next step.", arguments: variables })

const tracker = McpServer.layer(
  { name: "issues", version: "1.0.0" },
  Tool.layer(list, ({ label, status }) =>
    Effect.succeed({
      issues: [...issues.values()].reverse().filter((issue) =>
        (!status || issue.status === status) && (!label || issue.labels.includes(label))
      )
    })),
  ResourceTemplate.layer(
    one,
    ({ id }, uri) =>
      find(id).pipe(Effect.map((issue) => JSON.stringify(issue)), Effect.mapError(() => Resource.notFound(uri)))
  ),
  Prompt.layer(
    triage,
    ({ id }) =>
      Effect.map(find(id), (issue) => `Suggest one label and the next step for this issue: ${JSON.stringify(issue)}`)
  ),
  Scopes.required(
    ["issues:write"],
    Tool.layer(
      create,
      (input) =>
        Effect.flatMap(
          user,
          (author) =>
            save({ id: issues.size + 1, body: "", labels: [], ...input, status: "open", author, comments: [] })
        )
    ),
    Tool.layer(
      comment,
      ({ id, text }) =>
        Effect.flatMap(
          Effect.zip(find(id), user),
          ([issue, author]) => save({ ...issue, comments: [...issue.comments, { author, text }] })
        )
    ),
    Tool.layer(close, ({ id }) => Effect.flatMap(find(id), (issue) => save({ ...issue, status: "closed" })))
  )
)

const port = Number(process.env["PORT"] ?? 3000)
const protection = Protect.make({
  resource: `http://127.0.0.1:${port}/mcp`,
  verify: TokenVerifier.jwt({ issuer: process.env["ISSUER"] ?? "https://login.example" }),
  scopes: ["issues:read"],
  principal: (token) => ({ id: Protect.idOf(token), name: token.subject })
})
NodeHttp.runMain(tracker, { port, protection })
