// #region server
import { AsyncServer } from "@skein/server/AsyncServer"
import { wordCount } from "./words.ts"

new AsyncServer({ name: "words", version: "1.0.0" }).use(wordCount).runHttp({ port: 3000, health: true })
// #endregion
