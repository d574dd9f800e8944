/** A program that asks for a paste on the terminal of its process, and writes its failure to stderr. */
import * as PasteSignIn from "@skein/auth/PasteSignIn"
import * as Effect from "effect/Effect"
import { page, unregistered } from "./kit.ts"

const signedIn = Effect.scoped(
  Effect.flatMap(PasteSignIn.make().open(unregistered), ({ authorize }) => authorize(page, "s1"))
)

void Effect.runPromise(Effect.match(signedIn, {
  onSuccess: (params) => void process.stderr.write(`\nAnswered with the code ${params.get("code")}\n`),
  onFailure: (error) => void process.stderr.write(`${error._tag}: ${error.message}\n`)
})).then(() => process.exit(0))
