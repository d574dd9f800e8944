/** An issue tracker over HTTP. Every request needs a token of the issuer; changes need the scope `issues:write`. */
import { AsyncServer, type HandlerContext, resourceNotFound, tool, VisibleError } from "skein"
import { principalId, protect, Scopes, TokenVerifier } from "skein/auth"
import { z } from "zod"

const Status = z.enum(["open", "closed"])
const Id = z.object({ id: z.coerce.number() })
const Filter = z.object({ status: Status.optional(), label: z.string().optional() })
const New = z.object({
  title: z.string().min(1).max(200),
  body: z.string().default(""),
  labels: z.array(z.string()).default([])
})
const Issue = New.extend({
  id: z.int(),
  status: Status,
  author: z.string(),
  comments: z.array(z.object({ author: z.string(), text: z.string() }))
})
const Issues = z.object({ issues: z.array(Issue) })
type Issue = z.output<typeof Issue>

const server = new AsyncServer({ name: "issues", version: "1.0.0" })
const issues = new Map<number, Issue>()
const user = ({ principal }: HandlerContext) => String(principal?.["name"])
const find = (id: number) => {
  const issue = issues.get(id)
  if (issue === undefined) throw new VisibleError(`No issue ${id}: call list_issues`)
  return issue
}
const save = async (issue: Issue) => {
  issues.set(issue.id, issue)
  await server.updated(`issues://${issue.id}`)
  return issue
}

const annotations = { readOnlyHint: true }
const list = tool(
  "list_issues",
  { description: "Lists issues, the newest first.", input: Filter, output: Issues, annotations },
  ({ label, status = null }) => ({
    issues: [...issues.values()].reverse()
      .filter((issue) => [null, issue.status].includes(status) && (!label || issue.labels.includes(label)))
  })
)
const create = tool(
  "create_issue",
  { description: "Creates an issue.", input: New, output: Issue },
  (input, context) => save({ ...input, id: issues.size + 1, status: "open", author: user(context), comments: [] })
)
const comment = tool(
  "add_comment",
  { description: "Adds a comment to an issue.", input: Id.extend({ text: z.string() }), output: Issue },
  ({ id, text }, context) => save({ ...find(id), comments: [...find(id).comments, { author: user(context), text }] })
)
const close = tool(
  "close_issue",
  { description: "Closes an issue.", input: Id, output: Issue, annotations: { idempotentHint: true } },
  ({ id }) => save({ ...find(id), status: "closed" })
)

const port = Number(process.env["PORT"] ?? 3000)
const protection = protect({
  resource: `http://127.0.0.1:${port}/mcp`,
  verify: TokenVerifier.jwt({ issuer: process.env["ISSUER"] ?? "https://login.example" }),
  scopes: ["issues:read"],
  principal: (token) => ({ id: principalId(token), name: token.subject })
})
server
  .use(list, Scopes.required(["issues:write"], create, comment, close))
  .template("issues://{id}", { name: "issue", mimeType: "application/json", variables: Id }, ({ id }, uri) => {
    if (!issues.has(id)) throw resourceNotFound(uri)
    return JSON.stringify(issues.get(id))
  })
  .prompt(
    "triage",
    { description: "Asks for a label and a next step.", arguments: Id },
    ({ id }) => `Suggest one label and the next step for this issue: ${JSON.stringify(find(id))}`
  )
  .runHttp({ port, protection })
