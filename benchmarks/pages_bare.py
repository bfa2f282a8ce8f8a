"""The least that a page of this kind is: one picker and one picture, nothing read. ``streamlit run`` executes this."""

import plotly.graph_objects as go
import streamlit as st

st.set_page_config(page_title="bare", layout="wide")
st.title("Bare")
power = st.selectbox("Power", ("1", "2", "3"), key="power", bind="query-params", width=150)
days = list(range(60))
st.plotly_chart(go.Figure(go.Scatter(x=days, y=[day ** int(power) for day in days])), width="stretch", key="picture")
