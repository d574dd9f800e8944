/**
 * Returns the message that it receives. The smallest server with a tool, a resource and a prompt.
 */
import * as McpServer from "@skein/server/McpServer"
import * as Prompt from "@skein/server/Prompt"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const message = Schema.String.annotate({ description: "The message to return" })

const tool = Tool.layer(
  Tool.make("echo", { description: "Returns the message.", input: { message }, annotations: { readOnlyHint: true } }),
  ({ message }) => Effect.succeed(message)
)

const resource = ResourceTemplate.layer(
  ResourceTemplate.make("echo://{message}", { name: "echo", mimeType: "text/plain" }),
  ({ message }) => Effect.succeed(message)
)

const prompt = Prompt.layer(
  Prompt.make("echo", { description: "Asks the model to repeat the message.", arguments: { message } }),
  ({ message }) => Effect.succeed(`Please repeat this message word for word: ${message}`)
)

export const Echo = McpServer.layer({ name: "echo", version: "1.0.0" }, tool, resource, prompt)
