/** Skein's client over `fetch`. */
import * as Http from "@skein/client/Http"
import type { Connect } from "../testClient.ts"
import { connectOver } from "../skein.ts"

export const connect: Connect = connectOver(Http.transport)
