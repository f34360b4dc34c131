"""Texts that run where somebody forgets to escape: by tag, attribute, URL, style, template, and by
what browsers make of broken markup. Each sets `window.hacked`."""

RUN = "window.hacked=1"
TAGS = (
    f"<script>{RUN}</script>",
    f"<ScRiPt>{RUN}</sCrIpT>",
    f"<script/x>{RUN}</script>",
    f"<script src=data:text/javascript,{RUN}></script>",
    f"<img src=x onerror={RUN}>",
    f"<img/src=x/onerror={RUN}>",
    f"<svg onload={RUN}>",
    f"<svg><script>{RUN}</script></svg>",
    f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    f"<math><mtext><img src=x onerror={RUN}></mtext></math>",
    f"<body onload={RUN}>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    f"<iframe src=javascript:parent.{RUN}></iframe>",
    f"<object data=javascript:{RUN}></object>",
    f"<embed src=javascript:{RUN}>",
    f"<input autofocus onfocus={RUN}>",
    f"<details open ontoggle={RUN}>",
    f"<video><source onerror={RUN}></video>",
    f"<audio src=x onerror={RUN}>",
    f"<marquee onstart={RUN}>",
    f"<form action=javascript:{RUN}><button>go</button></form>",
    f"<meta http-equiv=refresh content='0;url=javascript:{RUN}'>",
    f"<base href=javascript:{RUN}//>",
    f"<a href=javascript:{RUN}>x</a>",
    f"<style>@import 'javascript:{RUN}';</style>",
    f"<link rel=stylesheet href=data:text/css,*%7Bx:expression({RUN})%7D>",
    f"<template><img src=x onerror={RUN}></template>",
    f"<noscript><p title='</noscript><img src=x onerror={RUN}>'>",
)
OUT_OF = (
    "",
    '">',
    "'>",
    "</script>",
    "</textarea></title></style>",
    "-->",
    "]]>",
    "\\u003c/script>",
)
ATTRIBUTES = (
    f'" onmouseover="{RUN}',
    f"' onfocus='{RUN}' autofocus='",
    f"` onclick=`{RUN}",
    f'" style="background:url(javascript:{RUN})',
    f"javascript:{RUN}",
    f"java\tscript:{RUN}",
    f"data:text/html,<script>{RUN}</script>",
)
TEMPLATES = (
    "{{7*7}}",
    "{% raw %}{{ visit }}{% endraw %}",
    "${7*7}",
    "#{7*7}",
    "<%= 7*7 %>",
    "{{ ''.__class__.__mro__ }}",
    "{{constructor.constructor('window.hacked=1')()}}",
)
SCRIPTS = (f"';{RUN};//", f'";{RUN};//', f"\\';{RUN};//", f"</script><script>{RUN}//", "\u2028")
ODD = (
    "\u202egnp.exe",
    "&lt;script&gt;&amp;lt;",
    "&#60;script&#62;",
    "%3Cscript%3E",
    "<!--<script>",
    "<",
    "<a",
    "\x1b[31mred\x1b[0m",
    "a\u0000b".replace("\u0000", "\ufffd"),
    "😀" * 20,
)
POLYGLOTS: tuple[str, ...] = tuple(
    dict.fromkeys(
        [before + tag for before in OUT_OF for tag in TAGS]
        + [*ATTRIBUTES, *TEMPLATES, *SCRIPTS, *ODD]
    )
)
