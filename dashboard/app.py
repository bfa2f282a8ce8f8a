"""The dashboard's entry for Streamlit: ``streamlit run`` executes this file, ``crashpath dashboard`` starts that."""

from __future__ import annotations

import streamlit as st

from crashpath.dashboard import trends_page

st.set_page_config(page_title="crashpath", layout="wide")
st.navigation([st.Page(trends_page.page, title="Trends", url_path="trends", default=True)]).run()
