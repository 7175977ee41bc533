/** Code that verifies the notices of call_url on the called server, one file a language. The documentation, the API and a command show it. */
import go from "../../../client/verify/relay_notice.go" with { type: "text" };
import javascript from "../../../client/verify/relay_notice.mjs" with { type: "text" };
import php from "../../../client/verify/relay_notice.php" with { type: "text" };
import python from "../../../client/verify/relay_notice.py" with { type: "text" };
import ruby from "../../../client/verify/relay_notice.rb" with { type: "text" };

interface NoticeVerifier {
  /** The name in commands, such as `python`. */
  language: string;
  title: string;
  /** The name of the file to save the code in. */
  file: string;
  code: string;
}

export const NOTICE_VERIFIERS: readonly NoticeVerifier[] = [
  { language: "javascript", title: "JavaScript", file: "relay_notice.mjs", code: javascript },
  { language: "python", title: "Python", file: "relay_notice.py", code: python },
  { language: "go", title: "Go", file: "relay_notice.go", code: go },
  { language: "ruby", title: "Ruby", file: "relay_notice.rb", code: ruby },
  { language: "php", title: "PHP", file: "relay_notice.php", code: php },
];
