import * as Completion from "@skein/server/Completion"
import * as McpServer from "@skein/server/McpServer"
import * as Prompt from "@skein/server/Prompt"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const frameworksOf = (language: string) => Effect.succeed(language === "rust" ? ["axum", "actix"] : ["django", "flask"])

// #region prompts
const review = Prompt.make("review", {
  description: "Reviews code",
  arguments: {
    code: Schema.String.annotate({ description: "What to review" }),
    language: Schema.String,
    framework: Schema.optionalKey(Schema.String),
    tone: Schema.optionalKey(Schema.Literals(["kind", "strict"]))
  }
})

const reviews = Prompt.layer(
  review,
  ({ code, language, tone = "kind" }) =>
    Effect.succeed([
      Prompt.user(`Be ${tone}. Review this ${language}:`),
      Prompt.user(code),
      Prompt.assistant("Let me read it line by line.")
    ]),
  {
    complete: {
      language: ["python", "rust", "typescript"],
      framework: (typed, { language = "" }) => Effect.map(frameworksOf(language), Completion.matching(typed))
    }
  }
)
// #endregion

export const Reviews = McpServer.layer({ name: "reviews", version: "1.0.0" }, reviews)
